package podworker

import (
	"k8s.io/apimachinery/pkg/types"
)

// WhenGone runs f unless a worker has the pod, and returns its error. A worker that comes meanwhile begins after f, so
// that what f removes never belongs to a pod that runs. It does nothing while another f has the pod. f runs without a
// lock: removing a directory may take long.
func (w *Workers) WhenGone(uid types.UID, f func() error) error {
	return w.take(uid, f, func(*worker) bool { return false })
}

// WhenFinished is WhenGone that also runs f for a pod that rests in Finished: for what such a pod needs no longer.
func (w *Workers) WhenFinished(uid types.UID, f func() error) error {
	return w.take(uid, f, func(x *worker) bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.state == Finished
	})
}

func (w *Workers) take(uid types.UID, f func() error, allowed func(*worker) bool) error {
	w.mu.Lock()
	if x := w.workers[uid]; w.taken[uid] != nil || x != nil && !allowed(x) {
		w.mu.Unlock()
		return nil
	}
	done := make(chan struct{})
	w.taken[uid] = done
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.taken, uid)
		w.mu.Unlock()
		close(done)
	}()
	return f()
}
