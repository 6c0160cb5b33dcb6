package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
)

// TestRegisteredLabels: the kubelet gets what NodeRestriction lets it set, and no more: one refused label refuses the
// node.
func TestRegisteredLabels(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.Nodes[0].Labels = map[string]string{
		"disktype": "ssd", "example.com/a": "b", "notkubernetes.io/a": "b", corev1.LabelTopologyZone: "z",
		"node.kubernetes.io/x": "y", "a.kubelet.kubernetes.io/x": "y",
		"node-role.kubernetes.io/control-plane": "", "node-restriction.kubernetes.io/team": "a", "k8s.io/a": "b",
		corev1.LabelNodeExcludeBalancers: "",
	}
	of := node.Of(c, c.Nodes[0])
	const want = "--node-labels=a.kubelet.kubernetes.io/x=y,disktype=ssd,example.com/a=b,node.kubernetes.io/x=y,notkubernetes.io/a=b,topology.kubernetes.io/zone=z"
	// node.kubernetes.io is a prefix set aside for kubelets, and so is exclude-from-external-load-balancers within it.
	if got := strings.Join(of.UserFlags("kubelet"),
		" "); got != strings.Replace(want, "node.kubernetes.io/x",
		corev1.LabelNodeExcludeBalancers+"=,node.kubernetes.io/x", 1) {
		t.Errorf("%s\nnot %s", got, want)
	}
	if err := plan.CheckJoinedLabels(c.Nodes[0].Labels); err == nil ||
		!strings.Contains(err.Error(), "kubectl label node NAME node-role.kubernetes.io/control-plane=") ||
		strings.Contains(err.Error(), "disktype") {
		t.Error(err)
	}
	if err := plan.CheckJoinedLabels(map[string]string{"disktype": "ssd"}); err != nil {
		t.Error(err)
	}
}
