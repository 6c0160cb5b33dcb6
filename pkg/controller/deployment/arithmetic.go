package deployment

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// target is the size a ReplicaSet is to get.
//
// rs is the cached ReplicaSet and read only; resize copies it.
type target struct {
	rs       *appsv1.ReplicaSet
	replicas int32
}

func replicas(rs *appsv1.ReplicaSet) int32 {
	if rs == nil || rs.Spec.Replicas == nil {
		return 0
	}
	return *rs.Spec.Replicas
}

func sum(sets []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) (n int32) {
	for _, rs := range sets {
		if rs != nil {
			n += of(rs)
		}
	}
	return n
}

// available is how many of the ReplicaSet's replicas are available. Its status may still count pods that are to go
// since it shrank: of those that serve no more stay than its size.
func available(rs *appsv1.ReplicaSet) int32 { return min(rs.Status.AvailableReplicas, replicas(rs)) }

func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return slices.DeleteFunc(slices.Clone(sets), func(rs *appsv1.ReplicaSet) bool { return replicas(rs) == 0 })
}

// limits resolves maxSurge (percent rounded up) and maxUnavailable (rounded down). If both came out as 0 nothing could
// ever move, so maxUnavailable is then 1. Recreate has neither.
//
// n is 0 in a Deployment that is scaled to nothing: there is nothing to keep available, and shares of it are 0.
func limits(d *appsv1.Deployment) (surge, unavailable int32) {
	ru := d.Spec.Strategy.RollingUpdate
	n := *d.Spec.Replicas
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || ru == nil || n == 0 {
		if ru != nil && d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
			return resolve(ru.MaxSurge, n, true), 0
		}
		return 0, 0
	}
	surge, unavailable = resolve(ru.MaxSurge, n, true), resolve(ru.MaxUnavailable, n, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return surge, min(unavailable, n)
}

func resolve(v *intstr.IntOrString, n int32, up bool) int32 {
	got, err := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(v, intstr.FromInt32(0)), int(n), up)
	if err != nil {
		return 0
	}
	return int32(got)
}

// newReplicas returns how many replicas the new ReplicaSet, which has current now, may have beside the others. With
// RollingUpdate all together are at most spec.replicas + maxSurge. current is at most spec.replicas, and the result is
// never less.
func newReplicas(d *appsv1.Deployment, all []*appsv1.ReplicaSet, current int32) int32 {
	want := *d.Spec.Replicas
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return want
	}
	surge, _ := limits(d)
	room := want + surge - sum(all, replicas)
	if room <= 0 {
		return current
	}
	return current + min(room, want-current)
}

// reported reports whether the ReplicaSet's status is about its present size: a status for another size may
// count pods that the change removes, and miss those that it adds.
func reported(rs *appsv1.ReplicaSet) bool { return rs.Status.ObservedGeneration >= rs.Generation }

// shrinkOld returns new sizes for old ReplicaSets, oldest first. It works in two passes:
//
//   - Replicas that are not available go at once, because no client notices. This is what lets a rollout away from a
//     broken template finish.
//   - Of the available ones as many go as leave spec.replicas - maxUnavailable available.
//
// Nothing shrinks until all active ReplicaSets have reported on their present size.
func shrinkOld(d *appsv1.Deployment, next *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) []target {
	oldCount := sum(old, replicas)
	if oldCount == 0 || !reported(next) || slices.ContainsFunc(active(old), func(rs *appsv1.ReplicaSet) bool {
		return !reported(rs)
	}) {
		return nil
	}
	_, maxUnavailable := limits(d)
	minAvailable := *d.Spec.Replicas - maxUnavailable
	// How many replicas may go in total: all there are, less the minimum, less the new ones that are not available yet.
	// Unavailable new replicas must not be paid for with old ones that work.
	budget := oldCount + replicas(next) - minAvailable - (replicas(next) - available(next))
	if budget <= 0 {
		return nil
	}
	old = slices.Clone(old)
	slices.SortStableFunc(old, byAge)
	// First pass: unavailable replicas.
	size := make([]int32, len(old))
	for i, rs := range old {
		unhealthy := max(replicas(rs)-available(rs), 0)
		cut := min(unhealthy, budget)
		size[i], budget = replicas(rs)-cut, budget-cut
	}
	// Second pass: what is available beyond the minimum.
	spare := sum(old, available) + available(next) - minAvailable
	for i := range old {
		cut := min(size[i], max(spare, 0))
		size[i], spare = size[i]-cut, spare-cut
	}
	var out []target
	for i, rs := range old {
		if size[i] != replicas(rs) {
			out = append(out, target{rs, size[i]})
		}
	}
	return out
}

// scaleTargets returns the sizes after the Deployment's own size changed.
//
//   - A single active ReplicaSet, or the latest if none is active, takes the new size.
//   - After a finished rollout the new one has its size already, and the old ones go to 0.
//   - In the middle of a rolling update all share the change in proportion to their sizes. If only the new one grew, a
//     template that proves broken would get all new replicas
//     (https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling).
//   - With Recreate nothing is shared: the next step of the rollout sets the sizes.
func scaleTargets(d *appsv1.Deployment, next *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) []target {
	want := *d.Spec.Replicas
	if only := activeOrLatest(next, old); only != nil {
		if replicas(only) == want {
			return nil
		}
		return []target{{only, want}}
	}
	if saturated(d, next) {
		var out []target
		for _, rs := range active(old) {
			out = append(out, target{rs, 0})
		}
		return out
	}
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return nil
	}
	all := active(old)
	if replicas(next) > 0 {
		all = append(all, next)
	}
	out := proportional(d, all)
	keepAvailable(d, out)
	return out
}

// keepAvailable moves replicas from ReplicaSets that have some which are not available to those that would lose
// available ones, as far as the minimum needs it: a smaller size takes no more out of service than maxUnavailable
// allows. The sum stays.
//
// Proportions alone could take a working replica of the old set and leave a broken one of the new set. Kubernetes stops
// there; this step goes further (docs/differences.md).
func keepAvailable(d *appsv1.Deployment, targets []target) {
	_, unavailable := limits(d)
	missing, spare, has := *d.Spec.Replicas-unavailable, int32(0), int32(0)
	for _, t := range targets {
		missing -= min(t.replicas, available(t.rs))
		has += max(available(t.rs)-t.replicas, 0)
		spare += max(t.replicas-available(t.rs), 0)
	}
	missing = min(missing, spare, has)
	give, take := missing, missing
	for i := range targets {
		t, a := &targets[i], available(targets[i].rs)
		if n := min(give, max(a-t.replicas, 0)); n > 0 {
			t.replicas, give = t.replicas+n, give-n
		} else if n := min(take, max(t.replicas-a, 0)); n > 0 {
			t.replicas, take = t.replicas-n, take-n
		}
	}
}

// activeOrLatest returns the one active ReplicaSet, or if none is active the newest; nil if several are.
//
// A Deployment that was scaled to 0 has none that is active: the latest is the one that comes back.
func activeOrLatest(next *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	all := active(old)
	if replicas(next) > 0 {
		all = append(all, next)
	}
	switch {
	case len(all) == 1:
		return all[0]
	case len(all) > 1:
		return nil
	case next != nil:
		return next
	case len(old) > 0:
		return slices.MaxFunc(old, byAge)
	}
	return nil
}

// saturated reports whether the new ReplicaSet has all replicas, all available, and knows the Deployment's present
// size.
//
// The annotation is compared too: sizes that only happen to match, from before the Deployment was resized, do not
// count.
func saturated(d *appsv1.Deployment, next *appsv1.ReplicaSet) bool {
	if next == nil {
		return false
	}
	desired, ok := sizeOf(next, desiredAnnotation)
	want := *d.Spec.Replicas
	return ok && desired == want && replicas(next) == want && available(next) == want
}

// proportional divides the change among the ReplicaSets by their share. When growing, the larger and then newer come
// first, when shrinking the larger and then older; the first one takes what rounding leaves.
//
// The total afterwards is spec.replicas + maxSurge, or 0: a rollout in progress uses its surge. Rounding must not lose
// replicas, or the rollout would never come to its size.
func proportional(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) []target {
	allowed := int32(0)
	surge, _ := limits(d)
	if *d.Spec.Replicas > 0 {
		allowed = *d.Spec.Replicas + surge
	}
	change := allowed - sum(sets, replicas)
	// Of equal sizes the newer grows first and the older shrinks first: both bring the rollout forward.
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		age := byAge(a, b)
		if change > 0 {
			age = -age
		}
		return cmp.Or(cmp.Compare(replicas(b), replicas(a)), age)
	})
	out := make([]target, len(sets))
	given := int32(0)
	for i, rs := range sets {
		part := share(d, rs, change, given, surge)
		given += part
		out[i] = target{rs, replicas(rs) + part}
	}
	// What rounding left over, positive or negative, goes to the largest.
	if len(out) > 0 && change != 0 {
		out[0].replicas = max(out[0].replicas+change-given, 0)
	}
	return out
}

// share returns the part of change that falls to rs; given is the part that other ReplicaSets have taken.
//
// It never takes more than is left of change, in either direction.
func share(d *appsv1.Deployment, rs *appsv1.ReplicaSet, change, given, surge int32) int32 {
	if replicas(rs) == 0 || change == 0 || change == given {
		return 0
	}
	part := fraction(d, rs, surge)
	if change > 0 {
		return min(part, change-given)
	}
	return max(part, change-given)
}

// fraction is what rs gains, or loses below 0, if its share of the whole stays the same. The whole before the change is
// in the annotation max-replicas of the last resize; without it, what the status counts.
func fraction(d *appsv1.Deployment, rs *appsv1.ReplicaSet, surge int32) int32 {
	if *d.Spec.Replicas == 0 {
		return -replicas(rs)
	}
	before, ok := sizeOf(rs, maxAnnotation)
	if !ok || before == 0 {
		before = d.Status.Replicas
	}
	if before == 0 {
		return 0
	}
	size := float64(replicas(rs)) * float64(*d.Spec.Replicas+surge) / float64(before)
	return int32(math.Round(size)) - replicas(rs)
}

// surplus returns the old ReplicaSets beyond revisionHistoryLimit that can go: the oldest revisions, when empty and
// settled.
//
// A ReplicaSet that has pods, or has not reported on its present size, stays, and is looked at again when it changes.
// The largest int32 as the limit means to keep all.
func surplus(d *appsv1.Deployment, old []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	if d.Spec.RevisionHistoryLimit == nil || *d.Spec.RevisionHistoryLimit == math.MaxInt32 {
		return nil
	}
	alive := slices.DeleteFunc(slices.Clone(old), func(rs *appsv1.ReplicaSet) bool {
		return rs.DeletionTimestamp != nil
	})
	n := len(alive) - int(*d.Spec.RevisionHistoryLimit)
	if n <= 0 {
		return nil
	}
	slices.SortFunc(alive, func(a, b *appsv1.ReplicaSet) int {
		return cmp.Or(cmp.Compare(revisionOf(a), revisionOf(b)), byAge(a, b))
	})
	return slices.DeleteFunc(alive[:n], func(rs *appsv1.ReplicaSet) bool {
		return rs.Status.Replicas != 0 || replicas(rs) != 0 || rs.Generation > rs.Status.ObservedGeneration
	})
}
