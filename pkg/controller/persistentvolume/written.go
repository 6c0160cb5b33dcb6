package persistentvolume

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
)

// written is a cache together with what was written and has not come back by the watch: what was done is seen at once,
// and not done again. It is no source of truth: who starts with an empty one does the same, only later.
//
// The workers of both loops share it. An entry goes when the cache has caught up: on the object's event (seen), or when
// it is next read.
type written[T apiclient.Object] struct {
	cache *controller.Informer[T]

	mu    sync.Mutex
	ahead map[controller.Key]T
}

func newWritten[T apiclient.Object](cache *controller.Informer[T]) *written[T] {
	return &written[T]{cache: cache, ahead: map[controller.Key]T{}}
}

// put notes what a write was answered with.
func (w *written[T]) put(o T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ahead[controller.KeyOf(o)] = o
}

// get returns the newest state that is known, and whether the object is there.
func (w *written[T]) get(key controller.Key) (T, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.cache.Seen() // before the cache is read: what comes meanwhile counts as not seen
	cached, ok := w.cache.Get(key)
	ahead, noted := w.ahead[key]
	switch {
	case !noted:
		return cached, ok
	case ok && older(cached.GetResourceVersion(), ahead.GetResourceVersion()),
		!ok && older(seen, ahead.GetResourceVersion()):
		return ahead, true
	}
	delete(w.ahead, key)
	return cached, ok
}

// seen forgets what the cache has caught up with.
func (w *written[T]) seen(key controller.Key) { w.get(key) }

// pending returns what the cache has not caught up with: indices do not have it yet.
func (w *written[T]) pending() []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []T
	for _, o := range w.ahead {
		out = append(out, o)
	}
	return slices.Clip(out)
}

func older(version, than string) bool {
	cmp, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && cmp < 0
}
