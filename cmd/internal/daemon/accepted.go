package daemon

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/spf13/pflag"
)

// AcceptedFlags are flags of upstream that users' start scripts pass but that change nothing here, grouped by the
// reason why. Each says so in --help, and a flag that is given is named in a warning: nobody should rely on a setting
// that has no effect.
type AcceptedFlags []Accepted

// Accepted is a group of such flags that have no effect for the same reason.
type Accepted struct {
	// Why says what the component does instead. It ends the sentence "The flag has no effect: …"; the reference shows
	// it.
	Why string
	// Strings to Maps are flags by the type of their values, which is upstream's: a malformed value is refused.
	// Lists are strings with commas between them, Maps key=value pairs.
	Strings, Bools, Ints, Int32s, Uints, Durations, Lists, Maps []string
	// Files are those whose value is the path of a file, which must be there.
	Files []string
}

// Names returns the flags of the group, in the order in which they are warned of.
func (a Accepted) Names() []string { return slices.Concat(a.kinds()...) }

// kinds are the flags of the group by type, in the order in which flags are warned of.
func (a Accepted) kinds() [][]string {
	return [][]string{a.Strings, a.Ints, a.Int32s, a.Uints, a.Durations, a.Lists, a.Maps,
		a.Bools, a.Files}
}

// AcceptedVersions are flags of emulated versions in the components of the control plane.
func AcceptedVersions() Accepted {
	return Accepted{Why: "no other version is emulated", Lists: []string{"min-compatibility-version"}}
}

// AddFlags registers the flags.
func (a AcceptedFlags) AddFlags(fs *pflag.FlagSet) {
	for _, group := range a {
		group.addFlags(fs)
	}
}

func (a Accepted) addFlags(fs *pflag.FlagSet) {
	const note = "Accepted for compatibility; without effect."
	for _, kind := range []struct {
		names []string
		add   func(name string)
	}{
		{a.Strings, func(name string) { fs.String(name, "", note) }},
		{a.Files, func(name string) { fs.String(name, "", note) }},
		{a.Bools, func(name string) { fs.Bool(name, false, note) }},
		{a.Ints, func(name string) { fs.Int(name, 0, note) }},
		{a.Int32s, func(name string) { fs.Int32(name, 0, note) }},
		{a.Uints, func(name string) { fs.Uint(name, 0, note) }},
		{a.Durations, func(name string) { fs.Duration(name, 0, note) }},
		{a.Lists, func(name string) { fs.StringSlice(name, nil, note) }},
		{a.Maps, func(name string) { fs.StringToString(name, nil, note) }},
	} {
		for _, name := range kind.names {
			kind.add(name)
		}
	}
}

// Check returns an error that names every file that cannot be read.
func (a AcceptedFlags) Check(fs *pflag.FlagSet) error {
	var errs []error
	for _, group := range a {
		for _, name := range group.Files {
			path, err := fs.GetString(name)
			if err == nil && path != "" {
				err = readable(name, path)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Warn names the flags that were given, ordered by the types of their values.
func (a AcceptedFlags) Warn(fs *pflag.FlagSet, log *slog.Logger) {
	var given []string
	for kind := range (Accepted{}).kinds() {
		for _, group := range a {
			for _, name := range group.kinds()[kind] {
				if fs.Changed(name) {
					given = append(given, "--"+name)
				}
			}
		}
	}
	if len(given) > 0 {
		log.Warn("these flags are accepted, but have no effect", "flags", given)
	}
}
