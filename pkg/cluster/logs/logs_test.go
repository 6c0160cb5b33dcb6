package logs

import (
	"strings"
	"testing"
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
