package main

import (
	"cmp"
	"slices"
	"sync/atomic"

	policyv1 "k8s.io/api/policy/v1"

	"bonsai/pkg/apiclient"
)

// budgets are the disruption budgets in one order, rebuilt after they changed; what is not read of them is dropped.
type budgets struct {
	mirror  *apiclient.Mirror[*policyv1.PodDisruptionBudget]
	changed atomic.Bool
	list    []*policyv1.PodDisruptionBudget
}

// newBudgets takes the handler of mirror.
func newBudgets(mirror *apiclient.Mirror[*policyv1.PodDisruptionBudget]) *budgets {
	b := &budgets{mirror: mirror}
	mirror.Slim = func(p *policyv1.PodDisruptionBudget) {
		p.ObjectMeta, p.Status.Conditions = slimMeta(p.ObjectMeta), nil
	}
	mirror.Changed = func(_, _ *policyv1.PodDisruptionBudget) { b.changed.Store(true) }
	return b
}

// Budgets implements preemption.Budgets. It says "not changed" before it reads: what comes meanwhile is there the next time.
func (b *budgets) Budgets() []*policyv1.PodDisruptionBudget {
	if b.changed.Swap(false) {
		b.list = nil
		b.mirror.Each(func(p *policyv1.PodDisruptionBudget) bool {
			b.list = append(b.list, p)
			return true
		})
		slices.SortFunc(b.list, func(a, c *policyv1.PodDisruptionBudget) int {
			return cmp.Or(cmp.Compare(a.Namespace, c.Namespace), cmp.Compare(a.Name, c.Name))
		})
	}
	return b.list
}
