package nodelifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func node(ready corev1.ConditionStatus, taints ...corev1.Taint) *corev1.Node {
	n := &corev1.Node{Spec: corev1.NodeSpec{Taints: taints}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	return n
}

func names(taints []corev1.Taint) (out []string) {
	for _, t := range taints {
		out = append(out, t.Key+":"+string(t.Effect))
	}
	slices.Sort(out)
	return out
}

func TestTaintsFollowTheState(t *testing.T) {
	t.Parallel()
	now := time.Unix(1, 0)
	user := corev1.Taint{Key: "example.com/mine", Effect: corev1.TaintEffectNoExecute}
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	cordoned := node(corev1.ConditionTrue)
	cordoned.Spec.Unschedulable = true
	pressed := node(corev1.ConditionTrue)
	pressed.Status.Conditions = append(pressed.Status.Conditions,
		corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	for _, c := range []struct {
		name string
		n    *corev1.Node
		want []string
	}{
		{"ready", node(corev1.ConditionTrue, notReady, user), []string{"example.com/mine:NoExecute"}},
		{"not ready", node(corev1.ConditionFalse, notReady),
			[]string{"node.kubernetes.io/not-ready:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"}},
		{"unknown", node(corev1.ConditionUnknown, notReady),
			[]string{"node.kubernetes.io/unreachable:NoExecute", "node.kubernetes.io/unreachable:NoSchedule"}},
		{"held back: not ready", node(corev1.ConditionFalse), []string{"node.kubernetes.io/not-ready:NoSchedule"}},
		{"held back: user's own", node(corev1.ConditionFalse, user),
			[]string{"example.com/mine:NoExecute", "node.kubernetes.io/not-ready:NoSchedule"}},
		{"cordoned", cordoned, []string{"node.kubernetes.io/unschedulable:NoSchedule"}},
		{"disk pressure", pressed, []string{"node.kubernetes.io/disk-pressure:NoSchedule"}},
		{"never reported", node(""), nil},
	} {
		if got := names(taintsFor(c.n, !strings.HasPrefix(c.name, "held back"), now)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestMarkUnknown(t *testing.T) {
	t.Parallel()
	n := node(corev1.ConditionTrue)
	if !markUnknown(n, time.Unix(1, 0)) || markUnknown(n, time.Unix(2, 0)) {
		t.Error("the first mark must change the node, the second must not")
	}
	if len(n.Status.Conditions) != 4 || n.Status.Conditions[0].Reason != "NodeStatusUnknown" ||
		n.Status.Conditions[1].Reason != "NodeStatusNeverUpdated" {
		t.Errorf("conditions = %+v", n.Status.Conditions)
	}
}
