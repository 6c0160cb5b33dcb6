package tainteviction

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"bonsai/pkg/controller"
)

// sighting is a taint and since when a node has it.
type sighting struct {
	corev1.Taint
	since time.Time
}

// decide reports whether a pod with these tolerations, which came to the node at arrived, has to leave, or how long it
// may still stay; 0 is for ever.
func decide(taints []sighting, tolerations []corev1.Toleration, arrived, now time.Time) (wait time.Duration,
	evict bool) {
	end, ends := deadline(taints, tolerations, arrived, now)
	if !ends {
		return 0, false
	}
	if left := end.Sub(now); left > 0 {
		return left, false
	}
	return 0, true
}

// deadline is when the pod has to leave; false says that it may stay for ever. The first toleration that matches a
// taint is the one that counts for it, also if a later one says less or more. Its time runs from when the pod and the
// taint have both been on the node; of several taints the one whose time is over first decides.
func deadline(taints []sighting, tolerations []corev1.Toleration, arrived, now time.Time) (end time.Time, ends bool) {
	for i := range taints {
		at := taints[i].since
		if arrived.After(at) {
			at = arrived
		}
		if at.After(now) { // clocks differ
			at = now
		}
		if used := firstMatch(&taints[i].Taint, tolerations); used != nil {
			if used.TolerationSeconds == nil {
				continue
			}
			at = at.Add(time.Duration(max(*used.TolerationSeconds, 0)) * time.Second)
		}
		if !ends || at.Before(end) {
			end, ends = at, true
		}
	}
	return end, ends
}

func firstMatch(t *corev1.Taint, tolerations []corev1.Toleration) *corev1.Toleration {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Logger{}, t, true) {
			return &tolerations[i]
		}
	}
	return nil
}

// arrival is when the pod came to its node.
func arrival(p *corev1.Pod) time.Time {
	if c := controller.PodCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return p.CreationTimestamp.Time
}
