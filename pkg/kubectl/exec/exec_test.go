package exec

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestExec: what is refused before anything is run, in the words of Kubernetes' kubectl 1.36, and what is asked of the
// server otherwise.
func TestExec(t *testing.T) {
	t.Parallel()
	const noTTY = "Unable to use a TTY - input is not a terminal or the right kind of file\n"
	for _, c := range []struct{ args, asked, want string }{
		{"exec", "", "error: pod, type/name or --filename must be specified\n"},
		{"exec -- ls", "", "error: pod, type/name or --filename must be specified\n"},
		{"exec one", "", "error: you must specify at least one command for the container\n"},
		{"exec one --", "", "error: you must specify at least one command for the container\n"},
		{"exec one ls", "", "error: exec [POD] [COMMAND] is not supported anymore. Use exec [POD] -- [COMMAND] instead\nSee 'kubectl exec -h' for help and examples\n"},
		{"exec done -- ls", "", "error: cannot exec into a container in a completed pod; current phase is Succeeded\n"},
		{"exec two -c zz -- ls", "", "error: container zz is not valid for pod two out of: x, y\n"},
		{"exec nosuch -- ls", "", "Error from server (NotFound): pods \"nosuch\" not found\n"},
		{"exec one -- ls -l /", "one/exec?command=ls&command=-l&command=%2F&container=main&stderr=true&stdout=true",
			""},
		{"exec two -- ls", "two/exec?command=ls&container=x&stderr=true&stdout=true",
			"Defaulted container \"x\" out of: x, y\n"},
		{"exec two -q -- ls", "two/exec?command=ls&container=x&stderr=true&stdout=true", ""},
		{"exec -i two -c y -- cat", "two/exec?command=cat&container=y&stderr=true&stdin=true&stdout=true", ""},
		{"exec -it one -- sh", "one/exec?command=sh&container=main&stderr=true&stdin=true&stdout=true", noTTY},
		{"exec -itq one -- sh", "one/exec?command=sh&container=main&stderr=true&stdin=true&stdout=true", ""},
		{"exec -t one -- sh", "one/exec?command=sh&container=main&stderr=true&stdout=true", ""},
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
