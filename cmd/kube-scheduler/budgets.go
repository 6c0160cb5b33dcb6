package main

import (
	"cmp"
	"log/slog"
	"slices"
	"sync/atomic"

	policyv1 "k8s.io/api/policy/v1"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/policy"
)

// budgets are the disruption budgets in one order. The list is rebuilt after a change; fields that preemption does not
// read are dropped.
//
// Changed runs on the informer's goroutine and only sets a flag; the scheduling goroutine owns list. One order and the
// same pointers let preemption see that nothing has changed.
type budgets struct {
	informer *apiclient.Informer[*policyv1.PodDisruptionBudget]
	changed  atomic.Bool
	list     []*policyv1.PodDisruptionBudget
}

func newBudgets(c *apiclient.Client, log *slog.Logger) *budgets {
	b := &budgets{informer: apiclient.NewInformer(policy.PodDisruptionBudgets(c), all(), log)}
	b.informer.Optional = true // pods are scheduled, and preempted, by a server without budgets, too
	b.informer.Slim = func(p *policyv1.PodDisruptionBudget) {
		p.ObjectMeta, p.Status.Conditions = slimMeta(p.ObjectMeta), nil
	}
	b.informer.Changed = func(_, _ *policyv1.PodDisruptionBudget) { b.changed.Store(true) }
	return b
}

// Budgets implements preemption.Budgets. It clears changed before it reads, so that a
// change that comes meanwhile is seen the next time.
func (b *budgets) Budgets() []*policyv1.PodDisruptionBudget {
	if b.changed.Swap(false) {
		b.list = nil
		b.informer.Each(func(p *policyv1.PodDisruptionBudget) bool {
			b.list = append(b.list, p)
			return true
		})
		slices.SortFunc(b.list, func(a, c *policyv1.PodDisruptionBudget) int {
			return cmp.Or(cmp.Compare(a.Namespace, c.Namespace), cmp.Compare(a.Name, c.Name))
		})
	}
	return b.list
}
