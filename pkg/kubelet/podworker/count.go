package podworker

import "bonsai/pkg/kubelet/runtime"

// Kind is what pods are counted by.
type Kind struct {
	State State
	// Removed: gone from its source. Found: no source has had it, it was found in the runtime; then it is Removed, too.
	Removed, Found bool
	Static         bool
}

// Count returns how many pods have workers, by kind.
func (w *Workers) Count() map[Kind]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[Kind]int{}
	for _, x := range w.workers {
		x.mu.Lock()
		out[Kind{State: x.state, Removed: x.removed, Found: x.found, Static: runtime.IsStatic(x.pod)}]++
		x.mu.Unlock()
	}
	return out
}
