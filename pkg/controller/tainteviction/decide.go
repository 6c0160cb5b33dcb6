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

// decide tells whether a pod with these tolerations, which came to the node at arrived, has to leave, or how long it may still
// stay; 0 is for ever. The first toleration that matches a taint is the one that counts for it, also if a later one says less
// or more. Its time runs from when the pod and the taint have both been on the node; of several taints the one whose time is
// over first decides.
func decide(taints []sighting, tolerations []corev1.Toleration, arrived, now time.Time) (wait time.Duration, evict bool) {
	for i := range taints {
		used := firstMatch(&taints[i].Taint, tolerations)
		if used == nil {
			return 0, true
		}
		if used.TolerationSeconds == nil {
			continue
		}
		start := taints[i].since
		if arrived.After(start) {
			start = arrived
		}
		if start.After(now) { // clocks differ
			start = now
		}
		left := start.Add(time.Duration(max(*used.TolerationSeconds, 0)) * time.Second).Sub(now)
		if left <= 0 {
			return 0, true
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait, false
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
