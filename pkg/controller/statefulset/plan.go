package statefulset

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// plan is the next step.
type plan struct {
	create []*corev1.Pod
	delete []*corev1.Pod
	// repair are the pods that lost the labels of their identity: a Service that selects one pod by name needs them.
	repair []*corev1.Pod
}

// state is one StatefulSet with all that decisions about it need.
//
// It belongs to one round on one goroutine. A plan is one step: the events of its pods bring the next round.
type state struct {
	set *appsv1.StatefulSet
	// update is the revision of the set's template. current is the revision before it; they are equal once all pods are
	// updated.
	current, update revision
	pods            []*corev1.Pod
	now             time.Time
}

func (s *state) start() int {
	if s.set.Spec.Ordinals == nil {
		return 0
	}
	return int(s.set.Spec.Ordinals.Start)
}

// ordered reports whether pods come and go one at a time, each healthy before the next. Parallel affects creation and
// scaling only, never updates, as the API documents.
func (s *state) ordered() bool {
	return s.set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// rolling reports whether the controller deletes pods to update them. With OnDelete the user does.
func (s *state) rolling() bool {
	return s.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType
}

// partition is how many pods, from the first on, stay at the current revision. OnDelete has none.
func (s *state) partition() int {
	if r := s.set.Spec.UpdateStrategy.RollingUpdate; s.rolling() && r != nil {
		return int(count(r.Partition))
	}
	return 0
}

// split returns the pods of the set's ordinals in order, nil for an ordinal without a pod, and apart from them the
// surplus pods, the highest ordinal first. Pods whose name has no ordinal are in neither.
//
// replicas has as many entries as spec.replicas: a place is its index, an ordinal is the place plus
// spec.ordinals.start.
func (s *state) split() (replicas, surplus []*corev1.Pod) {
	replicas = make([]*corev1.Pod, count(s.set.Spec.Replicas))
	for _, p := range s.pods {
		n, ok := ordinalOf(s.set, p)
		switch at := n - s.start(); {
		case !ok:
		case at >= 0 && at < len(replicas):
			replicas[at] = p
		default:
			surplus = append(surplus, p)
		}
	}
	slices.SortFunc(surplus, func(a, b *corev1.Pod) int {
		n, _ := ordinalOf(s.set, a)
		m, _ := ordinalOf(s.set, b)
		return cmp.Compare(m, n)
	})
	return replicas, surplus
}

// healthy reports whether the pod counts as there: running, ready for long enough, and not going away.
//
// With minReadySeconds a pod is healthy only after that time; the status asks to look again then.
func (s *state) healthy(p *corev1.Pod) bool {
	if p == nil || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
		return false
	}
	ok, _ := controller.PodAvailable(p, time.Duration(s.set.Spec.MinReadySeconds)*time.Second, s.now)
	return ok
}

// plan finds the next step: first create the missing pods, then delete the surplus ones, then update. Each of these
// waits until the one before has nothing left to do, so that a set that lacks pods never loses more.
func (s *state) plan() plan {
	var out plan
	replicas, surplus := s.split()
	if s.fill(replicas, &out) && s.drain(surplus, &out) && s.rolling() {
		out.delete = append(out.delete, s.roll(replicas)...)
	}
	return out
}

// fill gives every ordinal a pod. An ordered set looks at an ordinal only when all pods before it are healthy. A pod
// that has ended is deleted first, and created again in a later round: its successor has the same name. fill reports
// whether surplus pods may be looked at.
//
// Its answer is false while a pod is missing or unhealthy in an ordered set. Scaling down and updates then wait, so
// that they never add to a failure.
func (s *state) fill(replicas []*corev1.Pod, out *plan) bool {
	done := true
	for i, p := range replicas {
		// A terminating pod is not nil: its successor has the same name, and waits until the name is free.
		if p == nil {
			out.create = append(out.create, podFor(s.set, s.revisionAt(i), s.start()+i))
		} else if p.DeletionTimestamp == nil {
			if controller.PodTerminal(p) {
				out.delete, done = append(out.delete, p), false
			} else if !identified(s.set, p) {
				out.repair = append(out.repair, p)
			}
		}
		if s.ordered() && !s.healthy(p) {
			return false
		}
	}
	return done
}

// revisionAt is the revision from which the pod of a place is made: the first ones, below the partition, stay behind.
//
// A pod that dies below the partition comes back as it was, which is what makes a canary.
func (s *state) revisionAt(i int) revision {
	if i < s.partition() {
		return s.current
	}
	return s.update
}

// drain deletes surplus pods, which come the highest first; it reports whether updates may be looked at. An ordered set
// deletes one at a time and waits until it is gone; it leaves an unhealthy pod alone while one before it is unhealthy
// too.
//
// Its answer is false in an ordered set as long as a surplus pod exists: no update begins before the set has its size.
func (s *state) drain(surplus []*corev1.Pod, out *plan) bool {
	if len(surplus) == 0 {
		return true
	}
	if !s.ordered() {
		out.delete = append(out.delete, slices.DeleteFunc(slices.Clone(surplus), func(p *corev1.Pod) bool {
			return p.DeletionTimestamp != nil
		})...)
		return true
	}
	// An unhealthy pod may wait for one below it to work again; deleting more of them would make that less likely.
	last, before := surplus[0], surplus[1:]
	if last.DeletionTimestamp == nil && (s.healthy(last) || !slices.ContainsFunc(before, func(p *corev1.Pod) bool {
		return !s.healthy(p)
	})) {
		out.delete = append(out.delete, last)
	}
	return false
}
