package invariants

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deployment is a Deployment with the limits of all its generations.
type deployment struct {
	*appsv1.Deployment
	limits map[int64]limits
	// disturbed says that users have deleted or evicted pods of it: how many are available then is not the controllers'
	// doing alone.
	disturbed bool
}

// limits are what one generation of a Deployment allows: never more pods than most, never fewer available than least.
type limits struct{ most, least int }

// replicaSet is a ReplicaSet with the sizes of all its generations, and for each the oldest generation of its
// Deployment that it can come from.
type replicaSet struct {
	*appsv1.ReplicaSet
	sizes map[int64]int
	from  map[int64]int64
}

func limitsOf(d *appsv1.Deployment) limits {
	n := int(*d.Spec.Replicas)
	u := d.Spec.Strategy.RollingUpdate
	if u == nil {
		return limits{most: n}
	}
	most, _ := intstr.GetScaledValueFromIntOrPercent(u.MaxSurge, n, true)
	least, _ := intstr.GetScaledValueFromIntOrPercent(u.MaxUnavailable, n, false)
	if most == 0 && least == 0 {
		least = 1 // the documentation: both cannot be 0
	}
	return limits{n + most, max(n-least, 0)}
}

func (w *world) applyDeployment(d *appsv1.Deployment, gone bool) {
	if gone {
		delete(w.deployments, d.UID)
		return
	}
	known := w.deployments[d.UID]
	if known == nil {
		known = &deployment{limits: map[int64]limits{}}
		w.deployments[d.UID] = known
	}
	known.Deployment, known.limits[d.Generation] = d, limitsOf(d)
}

// widest are the limits that somebody may act by who has seen generation since, or a later one.
func (d *deployment) widest(since int64) limits {
	out := limits{most: -1, least: int(^uint(0) >> 1)}
	for g, l := range d.limits {
		if g >= since {
			out = limits{max(out.most, l.most), min(out.least, l.least)}
		}
	}
	return out
}

func (w *world) applySet(rs *appsv1.ReplicaSet, gone bool) {
	before := w.sets[rs.UID]
	if gone {
		delete(w.sets, rs.UID)
		return
	}
	set := before
	if set == nil {
		set = &replicaSet{sizes: map[int64]int{}, from: map[int64]int64{}}
		w.sets[rs.UID] = set
	}
	size, was := int(*rs.Spec.Replicas), 0
	if set.ReplicaSet != nil {
		was = int(*set.Spec.Replicas)
	}
	set.ReplicaSet = rs
	d := w.deployments[owner(rs)]
	if _, seen := set.from[rs.Generation]; !seen {
		set.sizes[rs.Generation] = size
		if d != nil {
			set.from[rs.Generation] = d.Status.ObservedGeneration
		}
	}
	if d == nil || size <= was {
		return
	}
	if sum, most := w.sizes(d), d.widest(d.Status.ObservedGeneration).most; sum > most {
		w.report(surge, "ReplicaSet %s grows from %d to %d: Deployment %s has %d replicas then, and may have %d",
			name(rs), was, size, name(d), sum, most)
	}
}

// sizes is how many replicas the ReplicaSets of a Deployment are to have together.
func (w *world) sizes(d *deployment) int {
	sum := 0
	for _, s := range w.sets {
		if owner(s) == d.UID {
			sum += int(*s.Spec.Replicas)
		}
	}
	return sum
}

// checkReplicas: a ReplicaSet makes no pod beyond its size.
func (w *world) checkReplicas(s *replicaSet) {
	most := 0
	for g, n := range s.sizes {
		if g >= s.Status.ObservedGeneration {
			most = max(most, n)
		}
	}
	if n := len(w.podsOf(s.UID, active)); n > most {
		w.report(replicas, "ReplicaSet %s has %d pods, and may have %d", name(s), n, most)
	}
}

// checkUnavailable: p, which served, is ended by a controller only if enough others serve.
func (w *world) checkUnavailable(s *replicaSet, p *corev1.Pod) {
	d := w.deployments[owner(s)]
	if d == nil || d.disturbed || d.DeletionTimestamp != nil || d.Spec.Strategy.RollingUpdate == nil {
		return
	}
	since, serve := d.Status.ObservedGeneration, 0
	for _, s := range w.sets {
		if owner(s) != d.UID {
			continue
		}
		serve += len(w.podsOf(s.UID, func(o *corev1.Pod) bool { return ready(o) && o.UID != p.UID }))
		if s.Status.ObservedGeneration < s.Generation || s.Status.Replicas != *s.Spec.Replicas {
			for g, from := range s.from { // it still does what an older generation asked for
				if g >= s.Status.ObservedGeneration {
					since = min(since, from)
				}
			}
		}
	}
	if least := d.widest(since).least; serve < least {
		w.report(unavailable, "pod %s ends: Deployment %s has %d available then, and must have %d (%s)", name(p),
			name(d), serve, least, w.describe(d))
	}
}

// describe is what there is of a Deployment.
func (w *world) describe(d *deployment) string {
	out := fmt.Sprintf("%d replicas, generation %d, seen %d", *d.Spec.Replicas, d.Generation,
		d.Status.ObservedGeneration)
	for _, s := range w.sets {
		if owner(s) == d.UID {
			out += fmt.Sprintf("; %s of %d with %d active, %d ready; status %d, %d available", s.Name, *s.Spec.Replicas,
				len(w.podsOf(s.UID, active)), len(w.podsOf(s.UID, ready)), s.Status.Replicas,
				s.Status.AvailableReplicas)
		}
	}
	return out
}

// disturb notes that users took a pod away.
func (w *world) disturb(p *corev1.Pod) {
	if s := w.sets[owner(p)]; s != nil {
		if d := w.deployments[owner(s)]; d != nil {
			d.disturbed = true
		}
	}
}

// checkBudget: an eviction leaves as many healthy pods as each budget that covers p asks for. The histories' budgets
// have a minAvailable.
func (w *world) checkBudget(p *corev1.Pod) {
	for _, b := range w.budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || b.Namespace != p.Namespace || !selector.Matches(labels.Set(p.Labels)) {
			continue
		}
		healthy := 0
		for _, o := range w.pods {
			if o.Namespace == b.Namespace && o.UID != p.UID && ready(o) && selector.Matches(labels.Set(o.Labels)) {
				healthy++
			}
		}
		if least := b.Spec.MinAvailable.IntValue(); healthy < least && ready(w.pods[p.UID]) {
			w.report(budget, "pod %s is evicted: %d healthy ones are left, and PodDisruptionBudget %s asks for %d",
				name(p), healthy, name(b), least)
		}
	}
}
