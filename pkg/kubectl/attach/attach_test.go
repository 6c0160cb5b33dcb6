package attach

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

const recorded = "All commands and output from this session will be recorded in container logs, including credentials and sensitive information passed through the command prompt.\n" +
	"If you don't see a command prompt, try pressing enter.\n"

// TestAttach: what is refused before, in the words of Kubernetes' kubectl 1.36, and what is asked of the server
// otherwise.
func TestAttach(t *testing.T) {
	t.Parallel()
	const noTTY = "error: Unable to use a TTY - container main did not allocate one\n"
	for _, c := range []struct{ args, asked, want string }{
		{"attach", "", "error: at least 1 argument is required for attach\n"},
		{"attach a b c", "", "error: expected POD, TYPE/NAME, or TYPE NAME, (at most 2 arguments) saw 3: [a b c]\n"},
		{"attach done", "", "error: cannot attach a container in a completed pod; current phase is Succeeded\n"},
		{"attach nosuch", "", "Error from server (NotFound): pods \"nosuch\" not found\n"},
		{"attach one", "one/attach?container=main&stderr=true&stdout=true", recorded},
		{"attach one -q", "one/attach?container=main&stderr=true&stdout=true", ""},
		{"attach two -i", "two/attach?container=x&stderr=true&stdin=true&stdout=true",
			"Defaulted container \"x\" out of: x, y\n" + recorded},
		{"attach -it one", "one/attach?container=main&stderr=true&stdin=true&stdout=true", noTTY + recorded},
		{"attach -itq one", "one/attach?container=main&stderr=true&stdin=true&stdout=true", ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			at, asked := writetest.ClosedPods(t)
			got, code := writetest.Run(t, NewCommand, at, "", strings.Fields(c.args)...)
			if asked() != c.asked || code != 1 {
				t.Errorf("asked %q, code %d, want %q", asked(), code, c.asked)
			}
			want := c.want
			if c.asked != "" {
				want += writetest.Refused
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
