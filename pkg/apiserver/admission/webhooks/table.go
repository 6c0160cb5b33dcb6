package webhooks

import (
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/catalog"
)

// table are the webhooks of one moment, and which of them which requests concern.
type table struct {
	hooks []*hook  // in the order they are asked
	found sync.Map // match.Question → *answer; as many as there are resources, subresources and operations
}

// answer is good for one state of the catalog.
type answer struct {
	generation uint64
	candidates []candidate
}

// candidate is a webhook whose rules match a request, and the version in which it wants the object.
type candidate struct {
	*hook
	match.Target
	index int // among all webhooks
}

// candidates are the webhooks whose rules match the request, in order.
func (t *table) candidates(served *catalog.Snapshot, a *admission.Attributes) []candidate {
	if len(t.hooks) == 0 {
		return nil
	}
	q := match.Ask(a)
	if have, ok := t.found.Load(q); ok && have.(*answer).generation == served.Generation() {
		return have.(*answer).candidates
	}
	out := &answer{generation: served.Generation()}
	for i, h := range t.hooks {
		rule := func(i int) *admissionregistrationv1.RuleWithOperations { return &h.Rules[i] }
		if found := q.Matches(served, len(h.Rules), rule, h.MatchPolicy); len(found) > 0 {
			out.candidates = append(out.candidates, candidate{h, found[0].Target, i})
		}
	}
	t.found.Store(q, out)
	return out.candidates
}
