package daemon

import (
	"log/slog"

	"github.com/spf13/pflag"
)

// Accepted are flags of upstream that users' start scripts pass but that change nothing here. Each says so in --help, and whoever
// gives one is warned: nobody should believe in a setting that does not hold.
type Accepted struct {
	// Values are the flags that need a value, of whatever form; Switches those that are true if they stand alone.
	Values, Switches []string
}

// AddFlags registers the flags.
func (a Accepted) AddFlags(fs *pflag.FlagSet) {
	const note = "Accepted for compatibility; without effect."
	for _, name := range a.Values {
		fs.String(name, "", note)
	}
	for _, name := range a.Switches {
		fs.Bool(name, false, note)
	}
}

// Warn names those of the flags that were given.
func (a Accepted) Warn(fs *pflag.FlagSet, log *slog.Logger) {
	var given []string
	for _, names := range [][]string{a.Values, a.Switches} {
		for _, name := range names {
			if fs.Changed(name) {
				given = append(given, "--"+name)
			}
		}
	}
	if len(given) > 0 {
		log.Warn("these flags are accepted, but have no effect", "flags", given)
	}
}
