package apiclient

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
)

// Informer lists and watches the selected objects of one resource (Follow), keeps them, and calls its handler in the
// order of the changes, from one goroutine. It has one reader, and stores only what Slim leaves of each object, once:
// the copies, queues and goroutines of client-go's shared informer cost more than a scheduler's decisions. Set the
// fields before Run. What Get and Each return is shared: DeepCopy before changing it.
type Informer[T interface {
	Object
	comparable
}] struct {
	// Slim drops the fields that no reader needs from a fresh object; nil keeps all fields.
	Slim func(T)
	// Changed is called with (zero, new) for an added object, (old, new) for a changed one and (old, zero) for a
	// deleted one. An object that replaced another of its name while the watch was broken counts as a deletion and an
	// addition. Changed may be nil.
	Changed func(old, new T)
	// Optional means that the server may not serve the resource. Until it does, there are no objects.
	Optional bool

	resource  *Resource[T]
	selection Selection
	log       *slog.Logger
	synced    atomic.Bool

	mu    sync.RWMutex
	byKey map[string]T
}

// NewInformer returns an informer without objects; Run fills it.
func NewInformer[T interface {
	Object
	comparable
}](r *Resource[T], s Selection, log *slog.Logger) *Informer[T] {
	return &Informer[T]{resource: r, selection: s, log: log, byKey: map[string]T{}}
}

// Run follows the server until ctx ends.
func (i *Informer[T]) Run(ctx context.Context) {
	lw, name := i.resource.ListWatch(i.selection), i.resource.gvr.Resource
	if i.Optional {
		followWhileServed(ctx, lw, name, i, i.log)
		return
	}
	Follow(ctx, lw, name, i, i.log)
}

// Synced reports whether all objects that existed at the start have been handled.
func (i *Informer[T]) Synced() bool { return i.synced.Load() }

// Get returns the object of that key (namespace/name, or name).
func (i *Informer[T]) Get(key string) (T, bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	o, ok := i.byKey[key]
	return o, ok
}

// Len is the number of objects.
func (i *Informer[T]) Len() int {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return len(i.byKey)
}

// Each calls f with every object, in no order, until it returns false.
func (i *Informer[T]) Each(f func(T) bool) {
	i.mu.RLock()
	defer i.mu.RUnlock()
	for _, o := range i.byKey {
		if !f(o) {
			return
		}
	}
}

// Set implements Sink.
func (i *Informer[T]) Set(o T) {
	if i.Slim != nil {
		i.Slim(o)
	}
	k := key(o)
	var zero T
	i.mu.Lock()
	old := i.byKey[k]
	i.byKey[k] = o
	i.mu.Unlock()
	if old != zero && old.GetUID() != o.GetUID() {
		i.call(old, zero)
		old = zero
	}
	i.call(old, o)
}

// Delete implements Sink.
func (i *Informer[T]) Delete(o T) { i.remove(key(o)) }

// Replace implements Sink. It reports deletions first: an object that replaces another may need its room.
func (i *Informer[T]) Replace(all []T) {
	seen := make(map[string]bool, len(all))
	for _, o := range all {
		seen[key(o)] = true
	}
	var gone []string
	i.mu.RLock()
	for k := range i.byKey {
		if !seen[k] {
			gone = append(gone, k)
		}
	}
	i.mu.RUnlock()
	for _, k := range gone {
		i.remove(k)
	}
	for _, o := range all {
		i.Set(o)
	}
	i.synced.Store(true)
}

func (i *Informer[T]) remove(k string) {
	var zero T
	i.mu.Lock()
	old, ok := i.byKey[k]
	delete(i.byKey, k)
	i.mu.Unlock()
	if ok {
		i.call(old, zero)
	}
}

func (i *Informer[T]) call(old, new T) {
	if i.Changed != nil {
		i.Changed(old, new)
	}
}

func key(o Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}
