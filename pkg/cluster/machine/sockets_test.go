package machine

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
)

// TestCheckSockets: a data directory below which the kernel takes no socket is told of before anything starts, and one
// letter less is none.
func TestCheckSockets(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for length, fits := range map[int]bool{87: true, 88: false} {
		c := plan.Default(filepath.Join(base, strings.Repeat("d", length-len(base)-1)), "")
		if err := os.MkdirAll(c.Layout().Run(), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", c.Layout().Socket("supervisor"))
		if (err == nil) != fits {
			t.Fatalf("%d: %v", length, err)
		}
		if err == nil {
			l.Close()
		}
		if err := CheckSockets(c); (err == nil) != fits ||
			err != nil && !strings.Contains(err.Error(), "a path of 108 characters") {
			t.Errorf("%d: %v", length, err)
		}
	}
	c := plan.Default("/"+strings.Repeat("d", 60), "")
	c.Nodes[0].Hostname = strings.Repeat("h", 63)
	if err := CheckSockets(c); err == nil {
		t.Error("a long name of a node's was not counted")
	}
}
