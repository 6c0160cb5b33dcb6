package cluster

import (
	"io"
	"os"
	"strings"
	"testing"
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
	c := testConfig(t) // of two nodes
	for _, dir := range []string{c.layout().node("n1"), c.layout().node("n3"), c.layout().node("x"), c.layout().pki("")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, may := range map[string]bool{"n1": true, "n2": true, "n3": true, "n4": false, "x": false, "": false, ".": false, "../pki": false, "n10": false} {
		if err := c.mayRemove(name); (err == nil) != may {
			t.Errorf("%q: %v", name, err)
		}
	}
	c.Nodes = c.Nodes[:1]
	if err := c.mayRemove("n1"); err == nil {
		t.Error("the last node may be removed")
	}
	if err := c.mayRemove("n3"); err != nil {
		t.Errorf("what is left of a node cannot be removed beside the last one: %v", err)
	}
}
