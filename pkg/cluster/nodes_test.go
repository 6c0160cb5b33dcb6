package cluster

import (
	"io"
	"os"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan/plantest"
)

// TestAddNodeLabels: what the API server would not take is refused before there is a node, which would never be Ready.
func TestAddNodeLabels(t *testing.T) {
	t.Parallel()
	err := AddNode(t.Context(), t.TempDir(), map[string]string{"a b": "c"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `--labels: Invalid value: "a b"`) {
		t.Error(err)
	}
}

// TestMayRemove: a node whose removal was broken off can be removed still, and a name leads to nothing but a node.
func TestMayRemove(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t) // of two nodes
	for _, dir := range []string{c.Layout().Node("n1"), c.Layout().Node("n3"), c.Layout().Node("x"),
		c.Layout().PKI("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, may := range map[string]bool{"n1": true, "n2": true, "n3": true, "n4": false, "x": false, "": false,
		".": false, "../pki": false, "n10": false} {
		if err := mayRemove(c, name); (err == nil) != may {
			t.Errorf("%q: %v", name, err)
		}
	}
	c.Nodes = c.Nodes[:1]
	if err := mayRemove(c, "n1"); err == nil {
		t.Error("the last node may be removed")
	}
	if err := mayRemove(c, "n3"); err != nil {
		t.Errorf("what is left of a node cannot be removed beside the last one: %v", err)
	}
}
