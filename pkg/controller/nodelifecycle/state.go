package nodelifecycle

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// markUnknown sets the conditions that the kubelet reports to Unknown and reports whether that changed anything.
//
// PIDPressure and the others go with Ready, because pods must not be placed by a state that nobody confirms.
// NetworkUnavailable does not: it is reported by the network, not by the kubelet.
func markUnknown(n *corev1.Node, now time.Time) (changed bool) {
	for _, t := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure,
		corev1.NodePIDPressure} {
		c := controller.NodeCondition(n, t)
		switch {
		case c == nil:
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
				Type: t, Status: corev1.ConditionUnknown, Reason: "NodeStatusNeverUpdated",
				Message:           "Kubelet never posted node status.",
				LastHeartbeatTime: n.CreationTimestamp, LastTransitionTime: metav1.NewTime(now),
			})
		case c.Status == corev1.ConditionUnknown:
			continue
		default:
			c.Status, c.Reason, c.Message = corev1.ConditionUnknown, "NodeStatusUnknown",
				"Kubelet stopped posting node status."
			c.LastTransitionTime = metav1.NewTime(now)
		}
		changed = true
	}
	return changed
}

// managed reports whether a taint follows from the node's state. Only these are added and removed here; a user's taint
// with another effect on the same key stays.
func managed(t corev1.Taint) bool {
	switch t.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable:
		return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
	case corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure,
		corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnschedulable:
		return t.Effect == corev1.TaintEffectNoSchedule
	}
	return false
}

// taintsFor returns the taints the node should have: those that follow from its state, which keep the time they were
// added, and all others as they are. evict allows those that drive pods away.
//
// The time that a taint was added must not change: tolerationSeconds count from it.
func taintsFor(n *corev1.Node, evict bool, now time.Time) []corev1.Taint {
	wanted := wantedTaints(n)
	if !evict {
		wanted = slices.DeleteFunc(wanted, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute })
	}
	var out []corev1.Taint
	for _, t := range n.Spec.Taints {
		if !managed(t) || take(&wanted, t) {
			out = append(out, t)
		}
	}
	at := metav1.NewTime(now)
	for _, t := range wanted {
		t.TimeAdded = &at
		out = append(out, t)
	}
	return out
}

func take(wanted *[]corev1.Taint, t corev1.Taint) bool {
	i := slices.IndexFunc(*wanted, func(w corev1.Taint) bool { return w.MatchTaint(&t) })
	if i < 0 {
		return false
	}
	*wanted = slices.Delete(*wanted, i, i+1)
	return true
}

// wantedTaints returns the taints that a node's conditions and spec.unschedulable call for
// (https://kubernetes.io/docs/reference/labels-annotations-taints/). Not ready and unreachable exclude each other: they
// are two values of one condition.
func wantedTaints(n *corev1.Node) (out []corev1.Taint) {
	add := func(key string, effects ...corev1.TaintEffect) {
		for _, e := range effects {
			out = append(out, corev1.Taint{Key: key, Effect: e})
		}
	}
	for _, c := range n.Status.Conditions {
		bad := c.Status == corev1.ConditionTrue
		switch c.Type {
		case corev1.NodeReady:
			switch c.Status {
			case corev1.ConditionFalse:
				add(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
			case corev1.ConditionUnknown:
				add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
			}
		case corev1.NodeMemoryPressure:
			if bad {
				add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
			}
		case corev1.NodeDiskPressure:
			if bad {
				add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
			}
		case corev1.NodePIDPressure:
			if bad {
				add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
			}
		case corev1.NodeNetworkUnavailable:
			if bad {
				add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
			}
		}
	}
	if n.Spec.Unschedulable {
		add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	}
	return out
}
