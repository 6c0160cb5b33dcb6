package garbagecollector

import "sync"

// absences remembers owners that were looked up in vain, so that a thousand dependents cost one lookup. An object never
// comes back under the same uid. The memory is bounded: when full it starts over.
type absences struct {
	mu  sync.Mutex
	set map[identity]struct{}
}

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
