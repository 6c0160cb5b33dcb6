package apiclient

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
)

// Mirror keeps a copy of the selected objects of one resource, told by Follow, and calls its handler in the order of
// the changes, from one goroutine. It keeps what Slim leaves of each object, once: the copies, queues and goroutines of
// a shared informer cost more than the decisions of a scheduler. Set the fields before Run. What it returns is shared:
// DeepCopy before changing it.
type Mirror[T interface {
	Object
	comparable
}] struct {
	// Slim drops from a fresh object what nobody reads; nil keeps all.
	Slim func(T)
	// Changed is called with (zero, new) for an added object, (old, new) for a changed, (old, zero) for one that is
	// gone. An object that took the place of another one of its name while the watch was broken is one that is gone and
	// one that is added. nil tells nobody.
	Changed func(old, new T)
	// Optional says that the server may not serve the resource: then there are no objects, until it does.
	Optional bool

	resource  *Resource[T]
	selection Selection
	log       *slog.Logger
	synced    atomic.Bool

	mu    sync.RWMutex
	byKey map[string]T
}

// NewMirror returns an empty copy of the selected objects, which Run fills.
func NewMirror[T interface {
	Object
	comparable
}](r *Resource[T], s Selection, log *slog.Logger) *Mirror[T] {
	return &Mirror[T]{resource: r, selection: s, log: log, byKey: map[string]T{}}
}

// Run follows the server until ctx ends.
func (m *Mirror[T]) Run(ctx context.Context) {
	lw, name := m.resource.ListWatch(m.selection), m.resource.gvr.Resource
	if m.Optional {
		followWhileServed(ctx, lw, name, m, m.log)
		return
	}
	Follow(ctx, lw, name, m, m.log)
}

// Synced is true once all objects that were there at the start have been handled.
func (m *Mirror[T]) Synced() bool { return m.synced.Load() }

// Get returns the object of that key (namespace/name, or name).
func (m *Mirror[T]) Get(key string) (T, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.byKey[key]
	return o, ok
}

// Len is the number of objects.
func (m *Mirror[T]) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.byKey)
}

// Each calls f with every object, in no order, until it returns false.
func (m *Mirror[T]) Each(f func(T) bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, o := range m.byKey {
		if !f(o) {
			return
		}
	}
}

// Set implements Sink.
func (m *Mirror[T]) Set(o T) {
	if m.Slim != nil {
		m.Slim(o)
	}
	k := key(o)
	var zero T
	m.mu.Lock()
	old := m.byKey[k]
	m.byKey[k] = o
	m.mu.Unlock()
	if old != zero && old.GetUID() != o.GetUID() {
		m.call(old, zero)
		old = zero
	}
	m.call(old, o)
}

// Delete implements Sink.
func (m *Mirror[T]) Delete(o T) { m.remove(key(o)) }

// Replace implements Sink. What is gone is told first: what takes its place may need its room.
func (m *Mirror[T]) Replace(all []T) {
	seen := make(map[string]bool, len(all))
	for _, o := range all {
		seen[key(o)] = true
	}
	var gone []string
	m.mu.RLock()
	for k := range m.byKey {
		if !seen[k] {
			gone = append(gone, k)
		}
	}
	m.mu.RUnlock()
	for _, k := range gone {
		m.remove(k)
	}
	for _, o := range all {
		m.Set(o)
	}
	m.synced.Store(true)
}

func (m *Mirror[T]) remove(k string) {
	var zero T
	m.mu.Lock()
	old, ok := m.byKey[k]
	delete(m.byKey, k)
	m.mu.Unlock()
	if ok {
		m.call(old, zero)
	}
}

func (m *Mirror[T]) call(old, new T) {
	if m.Changed != nil {
		m.Changed(old, new)
	}
}

func key(o Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}
