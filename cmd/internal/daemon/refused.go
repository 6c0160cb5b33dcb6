package daemon

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"
)

// Refused are flags of upstream that decide who may do what, or what is encrypted, checked, logged or served, and that
// are not built. A component does not start with one: a warning in a log is too little for whoever relies on the flag.
type Refused []Refusal

// Refusal is one such flag.
type Refusal struct {
	Name string
	// Would says what the flag does in Kubernetes; it follows "it would".
	Would string
	// Usual are the values that ask for nothing that is missing, such as upstream's default. The empty value always is
	// one.
	Usual []string
	// File reports that the value is a file's path, Switch that the flag means true if it stands alone.
	File, Switch bool
}

// AddFlags registers the flags. Each may stand more than once: no value hides behind a later one.
func (r Refused) AddFlags(fs *pflag.FlagSet) {
	for _, f := range r {
		fs.StringArray(f.Name, nil, "Not supported: it would "+f.Would+".")
		if f.Switch {
			fs.Lookup(f.Name).NoOptDefVal = "true"
		}
	}
}

// Check returns an error that names every flag that was given with another value than a usual one, and every file that
// is missing.
func (r Refused) Check(fs *pflag.FlagSet) error {
	var errs []error
	for _, f := range r {
		values, err := fs.GetStringArray(f.Name)
		if err != nil {
			return err
		}
		for _, value := range values {
			if value == "" || slices.Contains(f.Usual, value) {
				continue
			}
			errs = append(errs, fmt.Errorf("--%s=%s is not supported: it would %s; remove it to start without that",
				f.Name, value, f.Would))
			if f.File {
				errs = append(errs, readable(f.Name, value))
			}
		}
	}
	return errors.Join(errs...)
}

// readable reports why the file of a flag cannot be read.
func readable(flag, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return f.Close()
}
