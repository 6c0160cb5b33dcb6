package kubectl

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"bonsai/pkg/kubectl/cli"
)

// invocation is an example's command line: up to what the shell does with it.
var invocation = regexp.MustCompile(`kubectl (?:[^|<>;$"'` + "`" + `]|"[^"]*"|'[^']*'|<[a-z-]+>|\$[A-Z{(])*`)

// TestExamples: every command has examples in its help, each of a command that is there, with flags that it takes and
// needs.
func TestExamples(t *testing.T) {
	t.Parallel()
	examples := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if c.Example == "" {
			if !c.HasSubCommands() && !c.Hidden {
				t.Errorf("%s has no example", c.CommandPath())
			}
			return
		}
		for line := range strings.Lines(strings.ReplaceAll(c.Example, "\\\n", "")) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "#") || !strings.Contains(line, "kubectl ") {
				continue
			}
			examples++
			// a tree of its own: flags keep their values
			root := tree()
			words := split(invocation.FindString(line))[1:]
			found, rest, err := root.Find(words)
			if err != nil || found == root {
				t.Errorf("%s: %q is no command: %v", c.CommandPath(), line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %q: %v", c.CommandPath(), line, err)
				continue
			}
			if err := errors.Join(found.ValidateRequiredFlags(), found.ValidateArgs(found.Flags().Args())); err != nil {
				t.Errorf("%s: %q: %v", c.CommandPath(), line, err)
			}
		}
	}
	walk(tree())
	if examples < 100 {
		t.Errorf("%d examples", examples)
	}
}

// tree is kubectl with all its commands.
func tree() *cobra.Command {
	streams := cli.IOStreams{In: strings.NewReader(""), Out: os.Stderr, ErrOut: os.Stderr}
	f := cli.NewFactory("v1.36.3", streams)
	root := newRoot(f, streams, &diagnosis{})
	addCommands(root, f, streams)
	return root
}

// split cuts a line into words as a shell does, without its quotes.
func split(line string) []string {
	var out []string
	var word strings.Builder
	quote := rune(0)
	begun := false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
