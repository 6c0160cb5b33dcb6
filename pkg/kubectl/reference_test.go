package kubectl

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/referencetest"
)

// TestReferenceCommands: docs/reference has the commands, in the groups of the help, as they are.
func TestReferenceCommands(t *testing.T) {
	t.Parallel()
	streams := cli.IOStreams{Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	f := cli.NewFactory("v1", streams)
	root := newRoot(f, streams, &diagnosis{})
	addCommands(root, f, streams)
	var page strings.Builder
	page.WriteString("# Commands of kubectl\n\nMade from the commands of the program by " +
		"`go test ./pkg/kubectl -run TestReference -args -update`. Their flags are those of Kubernetes' kubectl " +
		"([differences](../../kubectl.md)); `kubectl COMMAND --help` shows them.\n\n")
	for _, g := range root.Groups() {
		var rows [][]string
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				rows = append(rows, commandRows(c)...)
			}
		}
		if len(rows) > 0 {
			fmt.Fprintf(&page, "## %s\n\n%s", strings.TrimSuffix(g.Title, ":"),
				referencetest.Table([]string{"command", "what it does"}, rows))
		}
	}
	referencetest.Check(t, "commands/kubectl.md", page.String())
}

// commandRows are the rows of a command and of all below it.
func commandRows(c *cobra.Command) [][]string {
	rows := [][]string{{referencetest.Code(c.CommandPath()), c.Short}}
	for _, sub := range c.Commands() {
		rows = append(rows, commandRows(sub)...)
	}
	return rows
}
