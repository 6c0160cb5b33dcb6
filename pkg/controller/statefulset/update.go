package statefulset

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// roll returns the pods to delete so that they come back at the update revision, from the highest ordinal down to the
// partition, as long as no more than maxUnavailable of all replicas are unhealthy (KEP-961). Pods below the partition
// count for that bound, too. Replacing an unhealthy pod costs nothing.
//
// The plan gets here only when nothing is missing; in an ordered set, only when every pod is healthy. There a pod that
// never becomes ready stops the update, and going back to the old template does not help: somebody has to delete the
// pod. Kubernetes documents this as forced rollback.
func (s *state) roll(replicas []*corev1.Pod) (out []*corev1.Pod) {
	at := s.partition()
	if at >= len(replicas) {
		return nil
	}
	most := s.maxUnavailable(len(replicas))
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
				continue
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

// maxUnavailable is at least 1, and 1 if the set has none; a percentage is of n, rounded down.
func (s *state) maxUnavailable(n int) int {
	r := s.set.Spec.UpdateStrategy.RollingUpdate
	if r == nil || r.MaxUnavailable == nil {
		return 1
	}
	// A value that cannot be read is refused by the API server.
	m, err := intstr.GetScaledValueFromIntOrPercent(r.MaxUnavailable, n, false)
	if err != nil {
		return 1
	}
	return max(m, 1)
}
