package drain

import (
	"testing"

	"bonsai/pkg/kubectl/write/writetest"
)

// TestCordonAllOrNone: a node that does not exist keeps the others as they are.
func TestCordonAllOrNone(t *testing.T) {
	t.Parallel()
	s := writetest.NewServer(t, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"},"spec":{"unschedulable":true}}`)
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"cordon", "a", "gone"}, "Error from server (NotFound): nodes \"gone\" not found\n", 1},
		{[]string{"cordon", "a", "b"}, "node/a cordoned\nnode/b already cordoned\n", 0},
	} {
		if got, code := writetest.Run(t, NewCordon, s.URL, "", c.args...); got != c.want || code != c.code {
			t.Errorf("%q: code %d, got %q", c.args, code, got)
		}
	}
}
