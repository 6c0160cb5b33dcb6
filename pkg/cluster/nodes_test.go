package cluster

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/logs"
	"bonsai/pkg/cluster/plan"
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

// TestRemoveNodeFiles: what a node has goes, and nothing else, whatever the data directory is called.
func TestRemoveNodeFiles(t *testing.T) {
	t.Parallel()
	c := plan.Default(filepath.Join(t.TempDir(), "[ci] *"), "")
	l := c.Layout()
	gone := []string{l.Kubeconfig("kubelet-n1"), l.PKI("kubelet-n1.crt"), l.PKI("kubelet-server-n1.key"),
		l.Node("n1", "lib", "x"), l.NodeLog("n1", "kubelet"), l.NodeSocket("n1")}
	stays := []string{l.Kubeconfig("kubelet-n2"), l.Kubeconfig("admin"), l.PKI("ca.crt"), l.PKI("kubelet-n2.crt"),
		l.PKI("kubelet-n12.crt"), l.Node("n2", "lib", "x"), l.NodeLog("n2", "kubelet"), l.Log("etcd")}
	for _, path := range slices.Concat(gone, stays) {
		if err := host.WriteFile(path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if names := logs.Names(c.Layout()); !slices.Equal(names, []string{"etcd", "n1-kubelet", "n2-kubelet"}) {
		t.Errorf("the logs are %v", names)
	}
	if err := removeNode(t.Context(), c, "n1"); err != nil {
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
