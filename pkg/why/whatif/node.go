package whatif

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
)

// cordon changes whether a node takes new pods.
func (f *future) cordon(name string, off bool) error {
	n := f.cluster.Snapshot.Get(name)
	if n == nil {
		return fmt.Errorf("there is no node %s", name)
	}
	node := n.Node.DeepCopy()
	node.Spec.Unschedulable = off
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnschedulable
	})
	if off {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable,
			Effect: corev1.TaintEffectNoSchedule})
	}
	f.cluster.SetNode(node)
	return nil
}

// guard is a budget while pods are evicted.
type guard struct {
	budget   *policyv1.PodDisruptionBudget
	selector labels.Selector
	allowed  int32
	pods     []why.Object // that it keeps, or that it loses
	healthy  int32        // of these
}

func (f *future) guards() (list []*guard) {
	for _, b := range f.cluster.Budgets {
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil {
			list = append(list, &guard{budget: b, selector: s, allowed: b.Status.DisruptionsAllowed})
		}
	}
	return list
}

// of returns the budget that protects a pod, nil if none does. Budgets protect pods that run.
func of(list []*guard, p *corev1.Pod) *guard {
	if p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil {
		return nil
	}
	return selecting(list, p)
}

func selecting(list []*guard, p *corev1.Pod) *guard {
	for _, g := range list {
		if g.budget.Namespace == p.Namespace && g.selector.Matches(labels.Set(p.Labels)) {
			return g
		}
	}
	return nil
}

// allows reports whether the budget lets a pod go now. One that is not ready may go where enough others are, or where
// the budget says so.
func (g *guard) allows(p *corev1.Pod) bool {
	if g.allowed > 0 {
		return true
	}
	s := &g.budget.Status
	policy := g.budget.Spec.UnhealthyPodEvictionPolicy
	return !ready(p) && (policy != nil && *policy == policyv1.AlwaysAllow ||
		s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy)
}

// drain evicts a node's pods. What a budget refuses is tried again after pods that were made in place of others run: so
// does kubectl. Pods that stay then are what the budgets forbid.
func (f *future) drain(ctx context.Context, name string) error {
	if err := f.cordon(name, true); err != nil {
		return err
	}
	guards := f.guards()
	left := slices.DeleteFunc(slices.Clone(f.cluster.Snapshot.Get(name).Pods), func(p *model.PodInfo) bool {
		return resident(p.Pod)
	})
	for moved := true; moved && len(left) > 0; {
		moved = false
		var refused []*model.PodInfo
		for _, p := range left {
			g := of(guards, p.Pod)
			if g != nil && !g.allows(p.Pod) {
				refused = append(refused, p)
				continue
			}
			if g != nil && ready(p.Pod) {
				g.allowed--
			}
			moved = true
			f.pending = append(f.pending, f.end(ctx, p)...)
		}
		before := len(f.result.Placed)
		pods := f.queue()
		if err := f.place(ctx, pods); err != nil {
			return err
		}
		f.refill(guards, pods, f.result.Placed[before:])
		left = refused
	}
	for _, p := range left {
		g := of(guards, p.Pod)
		g.pods = append(g.pods, f.object(p))
	}
	f.report(guards, Forbids,
		"It allows no disruption, so %s would stay on node "+name+", and the drain would not end.")
	return nil
}

// refill gives budgets back what pods that were made again bring when they are ready.
func (f *future) refill(guards []*guard, pods []*model.PodInfo, placed []Placed) {
	for _, r := range placed {
		i := slices.IndexFunc(pods, func(p *model.PodInfo) bool {
			return p.Pod.Name == r.Pod.Name &&
				p.Pod.Namespace == r.Pod.Namespace
		})
		if i < 0 {
			continue
		}
		if g := selecting(guards, pods[i].Pod); g != nil {
			g.allowed++
		}
	}
}

// lose deletes a node: its pods end, and nobody asks the budgets.
func (f *future) lose(ctx context.Context, name string) error {
	if f.cluster.Snapshot.Get(name) == nil {
		return fmt.Errorf("there is no node %s", name)
	}
	guards := f.guards()
	for _, p := range f.cluster.RemoveNode(name) {
		if g := of(guards, p.Pod); g != nil {
			g.pods = append(g.pods, f.object(p))
			if ready(p.Pod) {
				g.healthy++
			}
		}
		if resident(p.Pod) {
			continue
		}
		f.pending = append(f.pending, f.end(ctx, p)...)
	}
	for _, g := range guards {
		if g.budget.Status.CurrentHealthy-g.healthy >= g.budget.Status.DesiredHealthy {
			g.pods = nil
		}
	}
	f.report(guards, Breaks, "It would lose %s at once, and have fewer than it wants.")
	return nil
}

// report adds the budgets with pods to the result.
func (f *future) report(guards []*guard, effect, text string) {
	for _, g := range guards {
		if len(g.pods) == 0 {
			continue
		}
		var names []string
		for _, p := range g.pods {
			names = append(names, p.Name)
		}
		f.result.Budgets = append(f.result.Budgets, Budget{Effect: effect, Pods: g.pods,
			Budget:  why.ObjectOf("policy", "PodDisruptionBudget", g.budget),
			Allowed: g.budget.Status.DisruptionsAllowed,
			Text:    fmt.Sprintf(text, why.Count(len(names), "pod")+" ("+why.And(names)+")")})
	}
}
