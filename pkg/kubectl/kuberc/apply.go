package kuberc

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Apply makes the preferences' command of args, if their word at the given place is an alias, and returns the arguments
// that the alias stands for. word is where args name the command, -1 for nowhere. A built-in command is never replaced.
func (p *Preference) Apply(root *cobra.Command, args []string, word int) ([]string, error) {
	if word < 0 {
		return args, nil
	}
	at := slices.IndexFunc(p.Aliases, func(a Alias) bool { return a.Name == args[word] })
	if at < 0 || find(root, args[word]) != nil {
		return args, nil
	}
	alias := p.Aliases[at]
	command := find(root, alias.Command)
	if command == nil {
		return nil, p.place.at("aliases", at,
			fmt.Errorf("command %q not found to set alias %q: %v", alias.Command, alias.Name,
				strings.Fields(alias.Command)))
	}
	named := *command // with the flags of the command itself
	named.Use, named.Aliases, named.GroupID = alias.Name, nil, ""
	root.AddCommand(&named)
	named.PreRunE = before(&named, func() error {
		return p.set(&named, alias.Options, "aliases", at, "alias "+alias.Name)
	})
	out := slices.Concat(args[:word+1], alias.Prepended, args[word+1:])
	if completing := word > 0 && strings.HasPrefix(args[word-1], "__complete"); !completing {
		out = append(out, alias.Appended...)
	}
	return out, nil
}

// SetDefaults gives commands of root the options of the preferences; commands that there are not are warned of on w.
func (p *Preference) SetDefaults(root *cobra.Command, w io.Writer) {
	for i, d := range p.Defaults {
		command := find(root, d.Command)
		if command == nil {
			fmt.Fprintf(w, "Warning: command %q not found to set kuberc override\n", d.Command)
			continue
		}
		command.PreRunE = before(command, func() error {
			return p.set(command, d.Options, "defaults", i, "command "+d.Command)
		})
	}
}

// before runs do ahead of what command runs ahead of its work.
func before(command *cobra.Command, do func() error) func(*cobra.Command, []string) error {
	next, plain := command.PreRunE, command.PreRun
	return func(c *cobra.Command, args []string) error {
		if err := do(); err != nil {
			return &Error{err}
		}
		switch {
		case next != nil:
			return next(c, args)
		case plain != nil:
			plain(c, args)
		}
		return nil
	}
}

// Error is what was wrong with the preferences.
type Error struct{ err error }

func (e *Error) Error() string { return "error occurred while applying preferences " + e.err.Error() }

// Unwrap returns what was wrong.
func (e *Error) Unwrap() error { return e.err }

// Wrong makes err an Error.
func Wrong(err error) error { return &Error{err} }

// find finds a command by its words; root itself is none.
func find(root *cobra.Command, words string) *cobra.Command {
	c := root
	for _, w := range strings.Fields(words) {
		at := slices.IndexFunc(c.Commands(), func(sub *cobra.Command) bool {
			return sub.Name() == w || sub.HasAlias(w)
		})
		if at < 0 {
			return nil
		}
		c = c.Commands()[at]
	}
	if c == root {
		return nil
	}
	return c
}

// set gives the flags that the user did not set the values of options.
func (p *Preference) set(command *cobra.Command, options []Option, field string, i int, what string) error {
	for _, o := range options {
		flag := command.Flags().Lookup(o.Name)
		switch {
		case strings.HasPrefix(o.Name, "-"):
			return p.place.at(field, i, fmt.Errorf("flag name %s should be in long form without dashes", o.Name))
		case flag == nil:
			return p.place.at(field, i, fmt.Errorf("invalid flag %s for %s", o.Name, what))
		case flag.Changed:
			continue
		}
		if err := command.Flags().Set(o.Name, o.Default); err != nil {
			return p.place.at(field, i,
				fmt.Errorf("could not apply value %s to flag %s of %s: %w", o.Default, o.Name, what, err))
		}
	}
	return nil
}

// FlagOf is the value of --kuberc in args, which says where the preferences are before anything is parsed. known are
// the flags of all commands.
func FlagOf(args []string, known *pflag.FlagSet) string {
	value := ""
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		name, said, ok := strings.Cut(args[i], "=")
		switch {
		case name == "--kuberc" && ok:
			value = said
		case name == "--kuberc" && i+1 < len(args):
			i++
			value = args[i]
		case strings.HasPrefix(name, "--") && !ok:
			if f := known.Lookup(name[2:]); f != nil && f.NoOptDefVal == "" {
				i++ // its value
			}
		}
	}
	return value
}
