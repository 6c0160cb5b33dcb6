package daemon

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"
)

// Accepted are flags of upstream that users' start scripts pass but that change nothing here. Each says so in --help, and whoever
// gives one is warned: nobody should believe in a setting that does not hold.
type Accepted struct {
	// Values are the flags that need a value, of whatever form; Switches those that are true if they stand alone; Files those whose value
	// is the path of a file, which must be there.
	Values, Switches, Files []string
}

// With returns the flags of both.
func (a Accepted) With(b Accepted) Accepted {
	return Accepted{slices.Concat(a.Values, b.Values), slices.Concat(a.Switches, b.Switches), slices.Concat(a.Files, b.Files)}
}

// AcceptedLogging are flags of the log in all components: a line is written when it is made, to one stream, and verbosity is the same everywhere.
func AcceptedLogging() Accepted {
	return Accepted{Values: []string{"log-flush-frequency", "log-json-info-buffer-size", "log-text-info-buffer-size", "vmodule"},
		Switches: []string{"log-json-split-stream", "log-text-split-stream"}}
}

// AcceptedMetrics are flags of what metrics show, in the components of the control plane: nothing is hidden, and labels are what they are.
func AcceptedMetrics() Accepted {
	return Accepted{Values: []string{"allow-metric-labels", "disabled-metrics", "show-hidden-metrics-for-version", "min-compatibility-version"}, Files: []string{"allow-metric-labels-manifest"}}
}

// AddFlags registers the flags.
func (a Accepted) AddFlags(fs *pflag.FlagSet) {
	const note = "Accepted for compatibility; without effect."
	for _, name := range slices.Concat(a.Values, a.Files) {
		fs.String(name, "", note)
	}
	for _, name := range a.Switches {
		fs.Bool(name, false, note)
	}
}

// Check returns an error that names every file that cannot be read.
func (a Accepted) Check(fs *pflag.FlagSet) error {
	var errs []error
	for _, name := range a.Files {
		path, err := fs.GetString(name)
		if err == nil && path != "" {
			err = readable(name, path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Warn names those of the flags that were given.
func (a Accepted) Warn(fs *pflag.FlagSet, log *slog.Logger) {
	var given []string
	for _, names := range [][]string{a.Values, a.Switches, a.Files} {
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
