package garbagecollector

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/controller"
)

// patience is how long an answer from one resource is awaited before the others go on without it.
const patience = 30 * time.Second

// monitor feeds the graph from the watch of one resource. Where a controller already caches the resource it shares that
// watch; else it watches metadata only, and keeps no copy of the objects beside the graph.
type monitor struct {
	gvr     schema.GroupVersionResource
	kind    schema.GroupVersionKind
	started time.Time
	stop    context.CancelFunc
	apply   func(todo)
	changed func(schema.GroupVersionResource)
	graph   *graph

	mu     sync.Mutex
	known  map[types.UID]struct{}
	synced func() bool
}

var _ cache.ReflectorStore = (*monitor)(nil)

func (m *monitor) identify(o metav1.Object) identity {
	return identity{resource: m.gvr, kind: m.kind, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID()}
}

// Add takes in a new or changed object.
func (m *monitor) Add(obj any) error {
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.known[o.GetUID()] = struct{}{}
	m.mu.Unlock()
	m.apply(m.graph.observe(m.identify(o), o))
	m.changed(m.gvr)
	return nil
}

// Update is Add.
func (m *monitor) Update(obj any) error { return m.Add(obj) }

// Delete takes an object out.
func (m *monitor) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	m.forget(o.GetUID())
	m.changed(m.gvr)
	return nil
}

func (m *monitor) forget(uid types.UID) {
	m.mu.Lock()
	delete(m.known, uid)
	m.mu.Unlock()
	m.apply(m.graph.remove(uid))
}

// Replace takes in a whole list; what is not in it is gone.
func (m *monitor) Replace(list []any, _ string) error {
	m.mu.Lock()
	gone := m.known
	m.known = make(map[types.UID]struct{}, len(list))
	m.mu.Unlock()
	var errs []error
	for _, obj := range list {
		errs = append(errs, m.Add(obj))
		if o, err := meta.Accessor(obj); err == nil {
			delete(gone, o.GetUID())
		}
	}
	for uid := range gone {
		m.forget(uid)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = func() bool { return true }
	return errors.Join(errs...)
}

// Resync has nothing to do: the graph needs no repetition.
func (m *monitor) Resync() error { return nil }

// ready tells whether the graph has what the resource held at the start, or has waited for it long enough.
func (m *monitor) ready(now time.Time) bool {
	m.mu.Lock()
	synced := m.synced
	m.mu.Unlock()
	return synced != nil && synced() || now.Sub(m.started) > patience
}

// share takes the events of a cache that exists already.
func (m *monitor) share(i cache.SharedIndexInformer) error {
	reg, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { _ = m.Add(o) },
		UpdateFunc: func(old, o any) {
			was, err1 := meta.Accessor(old)
			is, err2 := meta.Accessor(o)
			if err1 == nil && err2 == nil && was.GetUID() != is.GetUID() {
				m.forget(was.GetUID())
			}
			_ = m.Add(o)
		},
		DeleteFunc: func(o any) { _ = m.Delete(o) },
	})
	if err != nil {
		return err
	}
	m.stop = func() { _ = i.RemoveEventHandler(reg) }
	m.mu.Lock()
	defer m.mu.Unlock()
	m.synced = reg.HasSynced
	return nil
}

// reflector watches the resource's metadata into m.
func (m *monitor) reflector(c metadata.Interface) *cache.Reflector {
	res := c.Resource(m.gvr)
	lw := controller.PlainListWatch{ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return res.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return res.Watch(ctx, o)
		},
	}}
	return cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, m, cache.ReflectorOptions{Name: "garbagecollector", TypeDescription: m.gvr.String()})
}
