package zpages

import (
	"regexp"

	"github.com/spf13/pflag"
)

// Flags are the values of all flags by name, hidden ones included. Flags name files with secrets and have none
// themselves, but URLs can: their passwords are left out.
func Flags(set *pflag.FlagSet) map[string]string {
	password := regexp.MustCompile(`(://[^/?#@\s,:]*):[^/?#\s,]*@`)
	values := map[string]string{}
	set.VisitAll(func(f *pflag.Flag) {
		values[f.Name] = password.ReplaceAllString(f.Value.String(), "$1:xxxxx@")
	})
	return values
}
