package notify

import "sync"

// Fan passes a notification on to all who want it. The zero value has nobody; its methods are safe for concurrent use.
type Fan struct {
	mu   sync.Mutex
	subs map[Signal]bool
}

// Subscribe returns a Signal that is notified with the Fan until stop is called.
func (f *Fan) Subscribe() (s Signal, stop func()) {
	s = New()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		f.subs = map[Signal]bool{}
	}
	f.subs[s] = true
	return s, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, s)
	}
}

// Notify notifies all. It never blocks.
func (f *Fan) Notify() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subs {
		s.Notify()
	}
}
