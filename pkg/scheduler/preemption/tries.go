package preemption

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// memory keeps what try found, for the next pods of the same class and priority. It belongs to the scheduling
// goroutine.
//
// At most maxKinds kinds are kept, each with one finding per slot; when a fifth comes all are dropped.
type memory struct {
	kinds   map[kind]*tries
	budgets []*policyv1.PodDisruptionBudget
}

// kind of pods for which try finds the same.
type kind struct {
	class    string
	priority int32
}

// tries are the findings on nodes, by slot.
type tries []finding

// finding is what try found on a node, while neither the node nor the pods nominated to it change.
type finding struct {
	version   int64 // of the node; 0: none
	nominated []*model.PodInfo
	candidate *candidate
	status    *framework.Status
}

// maxKinds is how many kinds of pods are kept.
const maxKinds = 4

// of returns what is kept for a kind of pods. Budgets are for all nodes: with others, nothing that was found holds.
func (m *memory) of(k kind, budgets []*policyv1.PodDisruptionBudget) *tries {
	if !slices.EqualFunc(m.budgets, budgets, sameBudget) {
		m.kinds, m.budgets = nil, budgets
	}
	t := m.kinds[k]
	if t == nil {
		if m.kinds == nil || len(m.kinds) == maxKinds {
			m.kinds = map[kind]*tries{}
		}
		t = &tries{}
		m.kinds[k] = t
	}
	return t
}

func sameBudget(a, b *policyv1.PodDisruptionBudget) bool {
	return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
}

// get returns what is known of a node to which these pods are nominated, or what find finds.
//
// The version covers every change of the node and its pods, also those that no filter reads: a victim's start time
// counts.
func (t *tries) get(n *model.NodeInfo, nominated []*model.PodInfo,
	find func() (*candidate, *framework.Status)) (*candidate, *framework.Status) {
	if t == nil || n.Version == 0 {
		return find()
	}
	for len(*t) <= n.Slot {
		*t = append(*t, finding{})
	}
	f := &(*t)[n.Slot]
	if f.version != n.Version || !slices.Equal(f.nominated, nominated) {
		*f = finding{version: n.Version, nominated: nominated}
		f.candidate, f.status = find()
	}
	return f.candidate, f.status
}
