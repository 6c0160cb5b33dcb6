package nodelabels

import (
	"slices"
	"testing"
)

// TestMayRegister: what a kubelet of Kubernetes v1.36.3 takes as --node-labels.
func TestMayRegister(t *testing.T) {
	t.Parallel()
	for label, want := range map[string]bool{
		"disktype": true, "example.com/a": true, "notkubernetes.io/a": true, "notk8s.io/a": true,
		"kubelet.kubernetes.io/a": true, "a.kubelet.kubernetes.io/a": true, "node.kubernetes.io/windows-build": true,
		"b.node.kubernetes.io/a":  true,
		"notnode.kubernetes.io/a": false, "kubernetes.io/a": false, "k8s.io/a": false, "foo.k8s.io/a": false,
		"node-role.kubernetes.io/control-plane": false, "node-restriction.kubernetes.io/team": false,
		"beta.kubernetes.io/a": false,
	} {
		if MayRegister(label) != want {
			t.Errorf("%s: %v", label, !want)
		}
	}
	for _, label := range Own() {
		if !MayRegister(label) {
			t.Errorf("%s is refused", label)
		}
	}
	if !slices.IsSorted(Own()) {
		t.Errorf("not sorted: %q", Own())
	}
}
