package zpages

import (
	"github.com/spf13/pflag"

	"bonsai/pkg/safetext"
)

// Flags are the values of all flags by name, hidden ones included. Flags name files with secrets and have none
// themselves, but URLs can: their passwords are left out.
func Flags(set *pflag.FlagSet) map[string]string {
	values := map[string]string{}
	set.VisitAll(func(f *pflag.Flag) { values[f.Name] = safetext.URLs(f.Value.String()) })
	return values
}
