package statefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// roll returns the pods to delete so that they come back at the update revision, from the highest ordinal down to the
// partition. The plan gets here only when nothing is missing; in an ordered set, only when every pod is healthy. A pod
// that never becomes ready therefore stops the update, and going back to the old template does not help: somebody has
// to delete the pod. Kubernetes documents this as forced rollback.
func (s *state) roll(replicas []*corev1.Pod) []*corev1.Pod {
	at := s.partition()
	if at >= len(replicas) {
		return nil
	}
	if r := s.set.Spec.UpdateStrategy.RollingUpdate; r != nil && r.MaxUnavailable != nil {
		return s.rollMany(replicas, at, s.maxUnavailable(r.MaxUnavailable, len(replicas)))
	}
	return s.rollOne(replicas, at)
}

// rollOne replaces one pod and waits until it is healthy before it goes on to the next lower ordinal. Pods further down
// do not matter to it.
func (s *state) rollOne(replicas []*corev1.Pod, at int) []*corev1.Pod {
	for _, p := range slices.Backward(replicas[at:]) {
		if s.outdated(p) {
			return []*corev1.Pod{p}
		}
		if !s.healthy(p) {
			return nil
		}
	}
	return nil
}

// rollMany replaces pods as long as no more than most of all replicas are unhealthy (KEP-961). Pods below the partition
// count for that bound, too. Replacing an unhealthy pod costs nothing.
func (s *state) rollMany(replicas []*corev1.Pod, at, most int) (out []*corev1.Pod) {
	for _, p := range replicas {
		if !s.healthy(p) {
			most--
		}
	}
	for _, p := range slices.Backward(replicas[at:]) {
		if !s.outdated(p) {
			continue
		}
		if s.healthy(p) {
			if most <= 0 {
				return out
			}
			most--
		}
		out = append(out, p)
	}
	return out
}

// outdated reports whether a pod is to be replaced.
func (s *state) outdated(p *corev1.Pod) bool {
	return p != nil && p.DeletionTimestamp == nil && revisionOf(p) != s.update.name
}

// maxUnavailable is at least 1; a percentage is of n, rounded down.
func (s *state) maxUnavailable(v *intstr.IntOrString, n int) int {
	// A value that cannot be read is refused by the API server.
	m, err := intstr.GetScaledValueFromIntOrPercent(v, n, false)
	if err != nil {
		return 1
	}
	return max(m, 1)
}
