package teardown

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

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
	if err := RemoveNode(t.Context(), l, c.Mark(), "n1"); err != nil {
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
