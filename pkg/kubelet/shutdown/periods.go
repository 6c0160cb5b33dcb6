package shutdown

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Period is the time that pods of that priority and above get for their end, up to the next higher Period.
type Period struct {
	Priority int32
	Grace    time.Duration
}

// Periods are those of shutdownGracePeriod and shutdownGracePeriodCriticalPods: the others first, then critical pods in
// what is left.
func Periods(total, critical time.Duration) []Period {
	if total == 0 {
		return nil
	}
	return []Period{{0, total - critical}, {runtime.SystemCriticalPriority, critical}}
}

// group is pods that end together.
type group struct {
	Period
	Pods []*corev1.Pod
}

// groupPods parts pods, the lowest priorities first. Those below all periods belong to the lowest one; groups without
// pods are left out.
func groupPods(periods []Period, pods []*corev1.Pod) []group {
	if len(periods) == 0 {
		return nil
	}
	groups := make([]group, len(periods))
	for i, p := range sorted(periods) {
		groups[i].Period = p
	}
	for _, pod := range pods {
		priority := runtime.Priority(pod)
		i := len(groups) - 1
		for i > 0 && groups[i].Priority > priority {
			i--
		}
		groups[i].Pods = append(groups[i].Pods, pod)
	}
	return slices.DeleteFunc(groups, func(g group) bool { return len(g.Pods) == 0 })
}

func sorted(periods []Period) []Period {
	out := slices.Clone(periods)
	slices.SortFunc(out, func(a, b Period) int { return cmp.Compare(a.Priority, b.Priority) })
	return out
}

// graceOf is what a pod gets: its own grace period, but no more than the group's.
func graceOf(p Period, pod *corev1.Pod) time.Duration {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return min(p.Grace, runtime.Seconds(*s))
	}
	return p.Grace
}

// longest is how long the end of all groups may take.
func longest(periods []Period) (sum time.Duration) {
	for _, p := range periods {
		sum += p.Grace
	}
	return sum
}
