package cluster

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	node := nodeConfig(c, c.Nodes[0])
	const want = "--node-labels=a.kubelet.kubernetes.io/x=y,disktype=ssd,example.com/a=b,node.kubernetes.io/x=y,notkubernetes.io/a=b,topology.kubernetes.io/zone=z"
	// node.kubernetes.io is a prefix set aside for kubelets, and so is exclude-from-external-load-balancers within it.
	if got := strings.Join(node.UserFlags("kubelet"),
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

// TestLabelPatch: a node gets the configuration's labels, loses those that left it, and keeps what others set.
func TestLabelPatch(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels    map[string]string
		annotated string
		wanted    map[string]string
		want      string
	}{
		"nothing wanted": {map[string]string{"mine": "x"}, "", nil, ""},
		"a role": {map[string]string{"mine": "x"}, "", map[string]string{"node-role.kubernetes.io/a": ""},
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":"node-role.kubernetes.io/a"},"labels":{"node-role.kubernetes.io/a":""}}}`},
		"registered": {map[string]string{"a": "1"}, "", map[string]string{"a": "1"},
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":"a"},"labels":{}}}`},
		"as it is": {map[string]string{"a": "1"}, "a", map[string]string{"a": "1"}, ""},
		"changed, one gone": {map[string]string{"a": "1", "b": "2"}, "a,b", map[string]string{"a": "3"},
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":"a"},"labels":{"a":"3","b":null}}}`},
		"all gone": {map[string]string{"a": "1", "mine": "x"}, "a", nil,
			`{"metadata":{"annotations":{"bonsai.io/configured-labels":null},"labels":{"a":null}}}`},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels}}
		if tc.annotated != "" {
			node.Annotations = map[string]string{labelledAnnotation: tc.annotated}
		}
		got, err := labelPatch(node, tc.wanted)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v, not %s", name, got, err, tc.want)
		}
	}
}
