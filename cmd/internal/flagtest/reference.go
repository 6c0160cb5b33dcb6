package flagtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/referencetest"
)

// Limited is a flag with some values that the component does not take, and why.
type Limited struct{ Name, Why string }

// Reference holds docs/reference/flags/COMPONENT.md against the flags of a component's command and its tables of flags
// without effect and of refused ones.
func Reference(t *testing.T, cmd *cobra.Command, accepted daemon.AcceptedFlags, refused daemon.Refused,
	limited ...Limited) {
	t.Helper()
	effects := map[string]string{}
	for _, group := range accepted {
		if group.Why == "" {
			t.Errorf("no reason why these flags have no effect: %v", group.Names())
		}
		for _, name := range group.Names() {
			effects[name] = "none: " + group.Why
		}
	}
	for _, f := range refused {
		effects[f.Name] = "refused: it would " + f.Would
		if usual := slices.DeleteFunc(slices.Clone(f.Usual), func(s string) bool { return s == "" }); len(usual) > 0 {
			effects[f.Name] += "; taken: `" + strings.Join(usual, "`, `") + "`"
		}
	}
	for _, f := range limited {
		effects[f.Name] = "limited: " + f.Why
	}
	var rows [][]string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		effect, special := effects[f.Name]
		delete(effects, f.Name)
		usage := f.Usage
		if special {
			usage = "" // it says the same
		}
		rows = append(rows, []string{flagName(f), shownType(f), shownDefault(f), usage, effect})
	})
	for name := range effects {
		t.Errorf("a table names --%s, which %s does not have", name, cmd.Name())
	}
	referencetest.Check(t, "flags/"+cmd.Name()+".md", fmt.Sprintf("# Flags of %s\n\n"+
		"Made from the flags of the program by `go test ./cmd/%[1]s -run TestReference -args -update`. "+
		"An empty last column means that the flag works.\n"+
		"A flag without effect (`none`) is named in the log if it is given. "+
		"A refused flag ends the start with an error that names it.\n\n", cmd.Name())+
		referencetest.Table([]string{"flag", "type", "default", "what it does", "effect"}, rows))
}

func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "`-" + f.Shorthand + "`, `--" + f.Name + "`"
	}
	return "`--" + f.Name + "`"
}

// shownDefault is the default of a flag; "" for what is empty.
func shownDefault(f *pflag.Flag) string {
	switch f.DefValue {
	case "[]", "map[]", "<nil>":
		return ""
	}
	return referencetest.Code(f.DefValue)
}

// Commands renders a command and all below it that are not hidden: what each is for, how it is called, and its flags.
func Commands(cmd *cobra.Command) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" {
			continue
		}
		fmt.Fprintf(&b, "## %s\n\n%s.\n\n", c.CommandPath(), strings.TrimSuffix(c.Short, "."))
		for _, text := range []string{c.UseLine(), c.Long, c.Example} {
			if text = strings.Trim(text, "\n"); text != "" {
				fmt.Fprintf(&b, "```text\n%s\n```\n\n", text) // it is laid out for a terminal
			}
		}
		b.WriteString(FlagTable(c.LocalNonPersistentFlags()))
		b.WriteString(Commands(c))
	}
	return b.String()
}

// FlagTable renders flags that all have an effect, except --help.
func FlagTable(fs *pflag.FlagSet) string {
	var rows [][]string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			rows = append(rows, []string{flagName(f), shownType(f), shownDefault(f), f.Usage})
		}
	})
	return referencetest.Table([]string{"flag", "type", "default", "what it does"}, rows)
}
