package cluster

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/host"
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

// TestRemoveNodeFiles: what a node has goes, and nothing else, whatever the data directory is called.
func TestRemoveNodeFiles(t *testing.T) {
	t.Parallel()
	c := Default(filepath.Join(t.TempDir(), "[ci] *"), "")
	l := c.layout()
	gone := []string{l.kubeconfig("kubelet-n1"), l.pki("kubelet-n1.crt"), l.pki("kubelet-server-n1.key"), l.node("n1", "lib", "x"), l.nodeLog("n1", "kubelet"), l.nodeSocket("n1")}
	stays := []string{l.kubeconfig("kubelet-n2"), l.kubeconfig("admin"), l.pki("ca.crt"), l.pki("kubelet-n2.crt"), l.pki("kubelet-n12.crt"), l.node("n2", "lib", "x"), l.nodeLog("n2", "kubelet"), l.log("etcd")}
	for _, path := range slices.Concat(gone, stays) {
		if err := host.WriteFile(path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if names := LogNames(c.DataDir); !slices.Equal(names, []string{"etcd", "n1-kubelet", "n2-kubelet"}) {
		t.Errorf("the logs are %v", names)
	}
	if err := c.removeNode(t.Context(), "n1"); err != nil {
		t.Error(err)
	}
	for _, path := range gone {
		if err := host.StatError(path); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
	for _, path := range stays {
		if err := host.StatError(path); err != nil {
			t.Error(err)
		}
	}
}
