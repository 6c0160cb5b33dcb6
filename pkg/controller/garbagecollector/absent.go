package garbagecollector

import "sync"

// absences remembers owners that a lookup did not find, so that a thousand dependents cost one request. An entry stays
// true: the API server never gives a uid to a second object. The workers of the check loop share it.
type absences struct {
	mu  sync.Mutex
	set map[identity]struct{}
}

// maxAbsences bounds the entries. When the set is full it starts over: the next dependent of a forgotten owner costs
// one request, which is cheaper than keeping an order for eviction.
const maxAbsences = 2000

func newAbsences() *absences { return &absences{set: map[identity]struct{}{}} }

func (a *absences) add(id identity) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.set) >= maxAbsences {
		clear(a.set)
	}
	a.set[id] = struct{}{}
}

func (a *absences) has(id identity) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.set[id]
	return ok
}
