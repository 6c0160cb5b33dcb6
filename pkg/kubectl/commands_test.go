package kubectl

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

// TestAlone: a command that is made without the others has its name and the help that it has among them; what has to
// see the others does.
func TestAlone(t *testing.T) {
	t.Parallel()
	helped := func(root *cobra.Command, name string) string {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs([]string{name, "--help"})
		if err := root.Execute(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return out.String()
	}
	streams := cli.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	f := cli.NewFactory("v1", streams)
	for _, g := range groups() {
		for _, c := range g.commands {
			whole, alone := newRoot(f, streams, &diagnosis{}), newRoot(f, streams, &diagnosis{})
			addCommands(whole, f, streams)
			added := addCommand(c.name, alone, f, streams)
			switch {
			case c.name == "plugin":
				if added {
					t.Errorf("%s has to see the other commands", c.name)
				}
			case !added:
				t.Errorf("no command %q", c.name)
			default:
				if got, want := helped(alone, c.name), helped(whole, c.name); got != want {
					t.Errorf("%s alone:\n%s\namong the others:\n%s", c.name, got, want)
				}
			}
		}
	}
	if addCommand("nosuch", newRoot(f, streams, &diagnosis{}), f, streams) {
		t.Error("a command that there is not was made")
	}
}
