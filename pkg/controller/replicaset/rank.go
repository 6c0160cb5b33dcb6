package replicaset

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// toDelete chooses n of the active pods, those that will be missed least first. perNode counts the related pods per
// node. The order is the documented one for ReplicaSets: unassigned before assigned; Pending before Unknown before
// Running; not ready before ready; lower controller.kubernetes.io/pod-deletion-cost; nodes with more related pods;
// ready for a shorter time; more restarts; younger. Times count in powers of two, so that old pods do not all go in the
// order of their birth.
func toDelete(active []*corev1.Pod, perNode map[string]int, n int, now time.Time) []*corev1.Pod {
	if n >= len(active) {
		return active
	}
	sorted := slices.Clone(active)
	slices.SortStableFunc(sorted, func(a, b *corev1.Pod) int { return compare(a, b, perNode, now) })
	return sorted[:n]
}

func compare(a, b *corev1.Pod, perNode map[string]int, now time.Time) int {
	aReady, bReady := controller.PodReady(a), controller.PodReady(b)
	order := cmp.Or(
		first(a.Spec.NodeName == "", b.Spec.NodeName == ""),
		cmp.Compare(phaseRank(a), phaseRank(b)),
		first(!aReady, !bReady),
		cmp.Compare(deletionCost(a), deletionCost(b)),
		cmp.Compare(perNode[b.Spec.NodeName], perNode[a.Spec.NodeName]),
	)
	if order == 0 && aReady && bReady {
		order = compareAge(readySince(a), readySince(b), now)
	}
	return cmp.Or(order,
		cmp.Compare(restarts(b), restarts(a)),
		compareAge(a.CreationTimestamp.Time, b.CreationTimestamp.Time, now),
		cmp.Compare(a.UID, b.UID),
	)
}

// first orders the one that is true before the other.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

func phaseRank(p *corev1.Pod) int {
	switch p.Status.Phase {
	case corev1.PodPending:
		return 0
	case corev1.PodUnknown:
		return 1
	case corev1.PodRunning:
		return 2
	default:
		return 0
	}
}

func deletionCost(p *corev1.Pod) int64 {
	cost, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return cost
}

func readySince(p *corev1.Pod) time.Time {
	if c := controller.PodCondition(p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func restarts(p *corev1.Pod) (most int32) {
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			most = max(most, c.RestartCount)
		}
	}
	return most
}

// compareAge orders the younger first; an unset time counts as the youngest of all.
func compareAge(a, b, now time.Time) int {
	switch {
	case a.Equal(b):
		return 0
	case a.IsZero() || b.IsZero():
		return first(a.IsZero(), b.IsZero())
	default:
		return cmp.Compare(ageBucket(now.Sub(a)), ageBucket(now.Sub(b)))
	}
}

func ageBucket(age time.Duration) int64 {
	if age <= 0 {
		return -1
	}
	return int64(math.Log2(float64(age)))
}
