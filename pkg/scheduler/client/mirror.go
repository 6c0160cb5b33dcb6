package client

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Object is a pointer to one of the API's types.
type Object interface {
	metav1.Object
	runtime.Object
	comparable
}

// Mirror follows all objects of one kind and calls its handlers in the order of the changes, from one goroutine. It keeps
// what Slim leaves of each object. Set the fields before Run.
type Mirror[T Object] struct {
	// Slim drops from a fresh object what nobody reads; nil keeps all.
	Slim func(T)
	// Changed is called with (zero, new) for an added object, (old, new) for a changed, (old, zero) for one that is gone.
	Changed func(old, new T)

	gvr      schema.GroupVersionResource
	selector string
	item     T
	list     runtime.Object
	client   *Client
	log      *slog.Logger

	mu     sync.RWMutex
	byKey  map[string]T
	synced atomic.Bool
}

// NewMirror returns a mirror of the resource. item and list are empty objects of its types; fields is a field selector.
func NewMirror[T Object](c *Client, log *slog.Logger, gvr schema.GroupVersionResource, item T, list runtime.Object, fields string) *Mirror[T] {
	return &Mirror[T]{gvr: gvr, selector: fields, item: item, list: list, client: c, log: log, byKey: map[string]T{}}
}

// Run follows the server until ctx ends.
func (m *Mirror[T]) Run(ctx context.Context) {
	logger := logr.FromSlogHandler(m.log.Handler())
	ctx = klog.NewContext(ctx, logger)
	r := cache.NewReflectorWithOptions(plainListWatch{&cache.ListWatch{
		ListWithContextFunc:  m.listAll,
		WatchFuncWithContext: m.watch,
	}}, m.item, m, cache.ReflectorOptions{Name: m.gvr.Resource, Logger: &logger})
	r.RunWithContext(ctx)
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

// Each calls f with every object until it returns false.
func (m *Mirror[T]) Each(f func(T) bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, o := range m.byKey {
		if !f(o) {
			return
		}
	}
}

func (m *Mirror[T]) listAll(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.FieldSelector = m.selector
	out := m.list.DeepCopyObject()
	return out, m.client.groups[m.gvr.GroupVersion()].Get().Resource(m.gvr.Resource).VersionedParams(&o, m.client.params).Do(ctx).Into(out)
}

func (m *Mirror[T]) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.FieldSelector, o.Watch = m.selector, true
	return m.client.groups[m.gvr.GroupVersion()].Get().Resource(m.gvr.Resource).VersionedParams(&o, m.client.params).Watch(ctx)
}

// plainListWatch tells the reflector not to ask for streaming lists, which not every server offers.
type plainListWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is client-go's optional question to a ListerWatcher.
func (plainListWatch) IsWatchListSemanticsUnSupported() bool { return true }

func key(o metav1.Object) string {
	if ns := o.GetNamespace(); ns != "" {
		return ns + "/" + o.GetName()
	}
	return o.GetName()
}

// Add is called by the reflector.
func (m *Mirror[T]) Add(obj any) error { return m.set(obj) }

// Update is called by the reflector.
func (m *Mirror[T]) Update(obj any) error { return m.set(obj) }

func (m *Mirror[T]) set(obj any) error {
	o, ok := obj.(T)
	if !ok {
		return nil
	}
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
	return nil
}

func (m *Mirror[T]) call(old, new T) {
	if m.Changed != nil {
		m.Changed(old, new)
	}
}

// Delete is called by the reflector.
func (m *Mirror[T]) Delete(obj any) error {
	if o, ok := obj.(T); ok {
		m.remove(key(o))
	}
	return nil
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

// Replace is called by the reflector after each list.
func (m *Mirror[T]) Replace(list []any, _ string) error {
	seen := make(map[string]bool, len(list))
	for _, obj := range list {
		if o, ok := obj.(T); ok {
			seen[key(o)] = true
		}
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
	for _, obj := range list {
		if err := m.set(obj); err != nil {
			return err
		}
	}
	m.synced.Store(true)
	return nil
}

// Resync does nothing.
func (m *Mirror[T]) Resync() error { return nil }
