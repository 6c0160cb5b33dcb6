package logs

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// TestFind: a short name is enough where it is unique, and the error names the choices.
func TestFind(t *testing.T) {
	t.Parallel()
	names := []string{"bonsai", "etcd", "kube-apiserver", "n1-containerd", "n1-kubelet", "n2-kubelet", "node-n1"}
	for _, c := range []struct{ process, node, want, err string }{
		{"etcd", "", "etcd", ""}, {"n2-kubelet", "", "n2-kubelet", ""}, {"kubelet", "n1", "n1-kubelet", ""},
		{"containerd", "", "n1-containerd", ""},
		{"kubelet", "", "", "--node (n1-kubelet, n2-kubelet)"}, {"kubelet", "n3", "", `no log of "n3-kubelet"`},
		{"apiserver", "", "", `no log of "apiserver"`},
	} {
		got, err := find(names, c.process, c.node)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s on %s: %q, %v", c.process, c.node, got, err)
		}
	}
}

// TestNames: a log has the name of its process, with the node's before it.
func TestNames(t *testing.T) {
	t.Parallel()
	l := plan.Layout(filepath.Join(t.TempDir(), "[ci] *"))
	for _, path := range []string{l.Log("etcd"), l.NodeLog("n1", "kubelet"), l.NodeLog("n2", "kubelet")} {
		if err := host.WriteFile(path, nil); err != nil {
			t.Fatal(err)
		}
	}
	if names := Names(l); !slices.Equal(names, []string{"etcd", "n1-kubelet", "n2-kubelet"}) {
		t.Errorf("the logs are %v", names)
	}
}
