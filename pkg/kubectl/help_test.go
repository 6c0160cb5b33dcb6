package kubectl

import (
	"bytes"
	"strings"
	"testing"

	"bonsai/pkg/kubectl/cli"
)

// TestHelp: help is asked for with help or --help; a command that only has subcommands shows it as an error.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, out, errOut string // parts of what is written, "" for nothing
		code              int
	}{
		{"", "Basic Commands (Beginner):\n  create          Create a resource", "", 0},
		{"help", "Basic Commands (Intermediate):\n  explain         Get documentation for a resource\n  get ", "", 0},
		{"help rollout undo", "Usage:\n  kubectl rollout undo (TYPE NAME | TYPE/NAME) [flags] [options]\n", "", 0},
		{"help nosuch", "", "Unknown help topic [`nosuch`]\n", 0},
		{"create --help", "\n  poddisruptionbudget   Create a pod", "", 0},
		{"create quota --help", "\nAliases:\nquota, resourcequota\n\n", "", 0},
		{"rollout --help", "Usage:\n  kubectl rollout SUBCOMMAND [options]\n", "", 0},
		{"config get-users -h", "Usage:\n  kubectl config get-users [flags] [options]\n", "", 0},
		{"rollout", "Available Commands:\n  history   ", "", 1},
		{"auth", "", "Inspect authorization.\n", 1},
		{"auth foo bar", "", "error: unknown command \"foo bar\"\nSee 'kubectl auth -h' for help and examples\n", 1},
		{"nosuch", "", "error: unknown command \"nosuch\" for \"kubectl\"\n", 1},
	} {
		var out, errOut bytes.Buffer
		code := Main(t.Context(), "v1", strings.Fields(c.args), cli.IOStreams{Out: &out, ErrOut: &errOut})
		if code != c.code || !has(out.String(), c.out) || !has(errOut.String(), c.errOut) {
			t.Errorf("kubectl %s: code %d\n%s\nerrors:\n%s", c.args, code, out.String(), errOut.String())
		}
	}
}

// has reports whether part is in s; an empty part stands for an empty s.
func has(s, part string) bool {
	return s == "" && part == "" || part != "" && strings.Contains(s, part)
}
