package wait

import (
	"strings"
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestOnce: without a timeout, what is asked for is looked at once.
func TestOnce(t *testing.T) {
	t.Parallel()
	pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"default"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"pod/p --for=condition=Ready", "pod/p condition met\n", 0},
		{"pod/p --for=condition=Odd", "error: condition not met for pods/p\n", 1},
		{"pod/p --for=jsonpath={.status.nope}", "error: condition not met for pods/p\n", 1},
		{"pod/p --for=delete", "error: condition not met for pods/p\n", 1},
		{"pod/gone --for=delete", "", 0},
		{"pod/p --for=create", "pod/p condition met\n", 0},
		{"pod/gone --for=create", "error: timed out waiting for the condition\n", 1},
		{"pod/p pod/gone --for=condition=Odd", "condition not met for pods/p\nError from server (NotFound): pods \"gone\" not found\n", 1},
		{"pod --all -n empty --for=condition=Ready", "error: no matching resources found\n", 1},
	} {
		s := writetest.NewServer(t, pod)
		got, code := writetest.Run(t, NewCommand, s.URL, "", append([]string{"wait", "--timeout=0"}, strings.Fields(c.args)...)...)
		if got != c.want || code != c.code {
			t.Errorf("wait %s:\n got %d %q\nwant %d %q", c.args, code, got, c.code, c.want)
		}
	}
}
