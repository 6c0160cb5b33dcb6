package preemption

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// candidate is a node with the pods that must go, the most important first.
type candidate struct {
	node       string
	victims    []*model.PodInfo
	violations int // of disruption budgets
}

// try finds the fewest victims on a node: all pods of lower priority are taken away, and if the pod fits then, one
// after the other is put back, those that a budget protects first, then by importance. nil with a status if the pod
// does not fit. nominated are the pods that wait for room on the node, which must be left to them.
//
// It works on copies of the state and of the node; nothing of it is seen outside.
func (p search) try(
	state *framework.CycleState, pod *model.PodInfo, on *model.NodeInfo, nominated []*model.PodInfo,
	budgets []*policyv1.PodDisruptionBudget,
) (*candidate, *framework.Status) {
	st := state.Clone()
	node, lower := on.Split(model.Priority(pod.Pod))
	for _, other := range lower {
		p.profile.RemovePod(st, pod, other, node)
	}
	// Even without all of them the pod does not fit.
	if s := p.fits(st, pod, node, nominated); !s.IsSuccess() {
		return nil, s
	}
	slices.SortStableFunc(lower, importance)
	protected, free := []*model.PodInfo(nil), lower
	if len(budgets) > 0 {
		protected, free = split(lower, budgets)
	}
	c := &candidate{node: on.Name()}
	reprieve := func(list []*model.PodInfo) (victims int) {
		for _, other := range list {
			node.AddPod(other)
			p.profile.AddPod(st, pod, other, node)
			if p.fits(st, pod, node, nominated).IsSuccess() {
				continue
			}
			node.RemovePod(other.Pod)
			p.profile.RemovePod(st, pod, other, node)
			c.victims = append(c.victims, other)
			victims++
		}
		return victims
	}
	// Protected pods have the first chance to stay. A budget is a wish here, as Kubernetes documents: preemption breaks
	// it if nothing else helps, and counts how often.
	c.violations = reprieve(protected)
	reprieve(free)
	if len(c.victims) == 0 {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, noVictims)
	}
	slices.SortStableFunc(c.victims, importance)
	return c, nil
}

// fits runs the filters, also as if the pods that wait for room on the node were there.
//
// Both must hold. With the waiting pods there may be too little room; without them, affinity to one of them would be
// fulfilled by a pod that may never come.
func (p search) fits(
	state *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo, nominated []*model.PodInfo,
) *framework.Status {
	if len(nominated) > 0 {
		with, full := state.Clone(), node.Clone()
		for _, w := range nominated {
			full.AddPod(w)
			p.profile.AddPod(with, pod, w, full)
		}
		if s := p.profile.RunFilter(with, pod, full); !s.IsSuccess() {
			return s
		}
	}
	return p.profile.RunFilter(state, pod, node)
}

// importance orders pods: higher priority first, then those that run longer.
func importance(a, b *model.PodInfo) int {
	if c := cmp.Compare(model.Priority(b.Pod), model.Priority(a.Pod)); c != 0 {
		return c
	}
	return started(a.Pod).Compare(started(b.Pod))
}

// started is when the pod began to run; one that has not is younger than all.
func started(pod *corev1.Pod) time.Time {
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time
	}
	return time.Unix(math.MaxInt32, 0)
}

// split takes out the pods whose eviction breaks a budget, counting down what each budget still allows.
func split(pods []*model.PodInfo, budgets []*policyv1.PodDisruptionBudget) (protected, free []*model.PodInfo) {
	allowed := make([]int32, len(budgets))
	for i := range budgets {
		allowed[i] = budgets[i].Status.DisruptionsAllowed
	}
	for _, p := range pods {
		broken := false
		for i := range budgets {
			b := budgets[i]
			if b.Namespace != p.Pod.Namespace {
				continue
			}
			// Without requirements it is about all pods of the namespace, as for evictions.
			sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			if err != nil || !sel.Matches(labels.Set(p.Pod.Labels)) {
				continue
			}
			if _, counted := b.Status.DisruptedPods[p.Pod.Name]; counted {
				continue
			}
			allowed[i]--
			broken = broken || allowed[i] < 0
		}
		if broken {
			protected = append(protected, p)
		} else {
			free = append(free, p)
		}
	}
	return protected, free
}

// pick returns the candidate that hurts least: fewest broken budgets, then the least important first victim, then the
// smallest sum of priorities, then the fewest victims, then the latest start of the most important victims.
//
// These are upstream's criteria of the default preemption, in their order. The first of equals wins, which is as good
// as random, because the walk began anywhere.
func pick(list []*candidate) *candidate {
	return slices.MinFunc(list, func(a, b *candidate) int {
		return cmp.Or(
			cmp.Compare(a.violations, b.violations),
			cmp.Compare(model.Priority(a.victims[0].Pod), model.Priority(b.victims[0].Pod)),
			cmp.Compare(a.sum(), b.sum()),
			cmp.Compare(len(a.victims), len(b.victims)),
			b.earliest().Compare(a.earliest()),
		)
	})
}

// sum adds the priorities, shifted to be positive so that more victims never count less.
func (c *candidate) sum() int64 {
	var n int64
	for _, v := range c.victims {
		n += int64(model.Priority(v.Pod)) + math.MaxInt32 + 1
	}
	return n
}

// earliest is the first start among the victims of the highest priority.
func (c *candidate) earliest() time.Time {
	first := started(c.victims[0].Pod)
	for _, v := range c.victims {
		if model.Priority(v.Pod) == model.Priority(c.victims[0].Pod) && started(v.Pod).Before(first) {
			first = started(v.Pod)
		}
	}
	return first
}
