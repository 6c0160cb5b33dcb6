package policies

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/match"
	"bonsai/pkg/apiserver/catalog"
)

// known are all policies and bindings of one kind. A change drops the table, and the next request makes another one:
// many changes at once cost one table.
type known struct {
	mu       sync.Mutex
	policies map[string]*policy  // by key; guarded by mu
	bindings map[string]*binding // by key; guarded by mu
	now      atomic.Pointer[table]
}

// knownPolicies and knownBindings are follow.Handlers.
type (
	knownPolicies known
	knownBindings known
)

// Put implements follow.Handler.
func (k *knownPolicies) Put(key string, obj runtime.Object) {
	p := newPolicy(obj)
	(*known)(k).change(func(k *known) { put(&k.policies, key, p) })
}

// Delete implements follow.Handler.
func (k *knownPolicies) Delete(key string) {
	(*known)(k).change(func(k *known) { delete(k.policies, key) })
}

// Put implements follow.Handler.
func (k *knownBindings) Put(key string, obj runtime.Object) {
	b := newBinding(obj)
	(*known)(k).change(func(k *known) { put(&k.bindings, key, b) })
}

// Delete implements follow.Handler.
func (k *knownBindings) Delete(key string) {
	(*known)(k).change(func(k *known) { delete(k.bindings, key) })
}

// fixedPolicies and fixedBindings are follow.Handlers of what files describe.
type (
	fixedPolicies known
	fixedBindings known
)

// inFiles begins the keys of what files describe.
const inFiles = "\x00"

// Put implements follow.Handler.
func (k *fixedPolicies) Put(key string, obj runtime.Object) {
	p := newPolicy(obj)
	p.fixed = true
	(*known)(k).change(func(k *known) { put(&k.policies, inFiles+key, p) })
}

// Delete implements follow.Handler.
func (k *fixedPolicies) Delete(key string) { (*knownPolicies)(k).Delete(inFiles + key) }

// Put implements follow.Handler.
func (k *fixedBindings) Put(key string, obj runtime.Object) {
	b := newBinding(obj)
	b.fixed = true
	(*known)(k).change(func(k *known) { put(&k.bindings, inFiles+key, b) })
}

// Delete implements follow.Handler.
func (k *fixedBindings) Delete(key string) { (*knownBindings)(k).Delete(inFiles + key) }

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

func (k *known) change(by func(*known)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	by(k)
	k.now.Store(nil)
}

// current is the table of what is known now.
func (k *known) current() *table {
	if t := k.now.Load(); t != nil {
		return t
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := newTable(k.policies, k.bindings)
	k.now.Store(t)
	return t
}

// table are the policies in force at one moment, and which of them which requests concern.
type table struct {
	bound []bound  // those of files first, then in the order of the policies' names
	found sync.Map // match.Question → *answer; as many as there are resources, subresources and operations
}

// bound is a policy with its bindings, in the order of their names. Without one it is not in force.
type bound struct {
	*policy
	bindings []*binding
}

func newTable(policies map[string]*policy, bindings map[string]*binding) *table {
	type place struct {
		policy string
		fixed  bool
	}
	of := map[place][]*binding{}
	for _, b := range bindings {
		at := place{b.policy, b.fixed}
		of[at] = append(of[at], b)
	}
	t := &table{}
	for _, p := range policies {
		if all := of[place{p.name, p.fixed}]; len(all) > 0 {
			slices.SortFunc(all, func(a, b *binding) int { return cmp.Compare(a.name, b.name) })
			t.bound = append(t.bound, bound{p, all})
		}
	}
	slices.SortFunc(t.bound, func(a, b bound) int {
		if a.fixed != b.fixed {
			if a.fixed {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.name, b.name)
	})
	return t
}

// answer is good for one state of the catalog.
type answer struct {
	generation uint64
	candidates []candidate
}

// candidate is a policy that may concern a request, and those of its bindings that may.
type candidate struct {
	*policy
	rules    matched
	bindings []boundTo
}

// boundTo is a binding that may concern a request.
type boundTo struct {
	*binding
	rules matched
}

// candidates are the policies that may concern the request, in order.
func (t *table) candidates(served *catalog.Snapshot, a *admission.Attributes) []candidate {
	if len(t.bound) == 0 {
		return nil
	}
	q := match.Ask(a)
	if have, ok := t.found.Load(q); ok && have.(*answer).generation == served.Generation() {
		return have.(*answer).candidates
	}
	out := &answer{generation: served.Generation()}
	for i := range t.bound {
		if c, ok := t.bound[i].about(served, &q); ok {
			out.candidates = append(out.candidates, c)
		}
	}
	t.found.Store(q, out)
	return out.candidates
}

// about reports whether a policy may concern a request. A policy without a matching binding counts too: its own errors
// are reported.
func (b *bound) about(served *catalog.Snapshot, q *match.Question) (candidate, bool) {
	rules, ok := b.criteria.about(served, q)
	if !ok {
		return candidate{}, false
	}
	c := candidate{policy: b.policy, rules: rules}
	for _, to := range b.bindings {
		if rules, ok := to.criteria.about(served, q); ok {
			c.bindings = append(c.bindings, boundTo{to, rules})
		}
	}
	return c, true
}
