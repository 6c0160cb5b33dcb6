package controller

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
)

// Monitor follows all objects of one resource, of any kind the server has, for those who need no more than metadata. Where
// controllers cache the resource already it shares their watch; else it watches metadata only. It keeps no objects.
type Monitor struct {
	gvr  schema.GroupVersionResource
	seen func(o metav1.Object, fresh bool)
	gone func(namespace string, uid types.UID)
	stop func()

	mu     sync.Mutex
	known  map[types.UID]string // the namespace of each object
	counts map[string]int       // how many there are in each namespace
	synced func() bool
}

// NewMonitor returns a monitor that calls seen for each new or changed object, fresh ones among them, and gone for each
// that is there no more.
func NewMonitor(gvr schema.GroupVersionResource, seen func(o metav1.Object, fresh bool), gone func(namespace string, uid types.UID)) *Monitor {
	return &Monitor{gvr: gvr, seen: seen, gone: gone, known: map[types.UID]string{}, counts: map[string]int{}}
}

// Follow begins to watch, as one of watches, until ctx ends or Stop is called.
func (m *Monitor) Follow(ctx context.Context, informers *Informers, c metadata.Interface, watches *sync.WaitGroup) error {
	if shared := informers.Shared(m.gvr); shared != nil {
		return m.share(shared)
	}
	ctx, m.stop = context.WithCancel(ctx)
	reflector := m.reflector(c)
	watches.Go(func() { reflector.RunWithContext(ctx) })
	return nil
}

// Stop ends what Follow began.
func (m *Monitor) Stop() { m.stop() }

// Synced tells whether the monitor has seen all that was there when it began.
func (m *Monitor) Synced() bool {
	m.mu.Lock()
	synced := m.synced
	m.mu.Unlock()
	return synced != nil && synced()
}

// Count returns how many objects there are in a namespace.
func (m *Monitor) Count(namespace string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[namespace]
}

// share takes the events of a cache that exists already.
func (m *Monitor) share(i cache.SharedIndexInformer) error {
	f := feed{m}
	reg, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { _ = f.Add(o) },
		UpdateFunc: func(old, o any) {
			was, err1 := meta.Accessor(old)
			is, err2 := meta.Accessor(o)
			if err1 == nil && err2 == nil && was.GetUID() != is.GetUID() {
				m.forget(was.GetUID())
			}
			_ = f.Add(o)
		},
		DeleteFunc: func(o any) { _ = f.Delete(o) },
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
func (m *Monitor) reflector(c metadata.Interface) *cache.Reflector {
	res := c.Resource(m.gvr)
	lw := PlainListWatch{ListWatch: &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return res.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return res.Watch(ctx, o)
		},
	}}
	return cache.NewReflectorWithOptions(lw, &metav1.PartialObjectMetadata{}, feed{m}, cache.ReflectorOptions{Name: "monitor", TypeDescription: m.gvr.String()})
}

// remember tells whether the object is new.
func (m *Monitor) remember(o metav1.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[o.GetUID()]; ok {
		return false
	}
	m.known[o.GetUID()] = o.GetNamespace()
	m.counts[o.GetNamespace()]++
	return true
}

func (m *Monitor) forget(uid types.UID) {
	m.mu.Lock()
	ns, ok := m.known[uid]
	delete(m.known, uid)
	if ok {
		if m.counts[ns]--; m.counts[ns] == 0 {
			delete(m.counts, ns)
		}
	}
	m.mu.Unlock()
	m.gone(ns, uid)
}

// feed is a Monitor as a reflector sees it.
type feed struct{ *Monitor }

var _ cache.ReflectorStore = feed{}

// Add takes in a new or changed object.
func (f feed) Add(obj any) error {
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	f.seen(o, f.remember(o))
	return nil
}

// Update is Add.
func (f feed) Update(obj any) error { return f.Add(obj) }

// Delete takes an object out.
func (f feed) Delete(obj any) error {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	f.forget(o.GetUID())
	return nil
}

// Replace takes in a whole list; what is not in it is gone.
func (f feed) Replace(list []any, _ string) error {
	here := make(map[types.UID]struct{}, len(list))
	var errs []error
	for _, obj := range list {
		errs = append(errs, f.Add(obj))
		if o, err := meta.Accessor(obj); err == nil {
			here[o.GetUID()] = struct{}{}
		}
	}
	for _, uid := range f.absent(here) {
		f.forget(uid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = func() bool { return true }
	return errors.Join(errs...)
}

// absent returns the known objects that are not here.
func (f feed) absent(here map[types.UID]struct{}) []types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []types.UID
	for uid := range f.known {
		if _, ok := here[uid]; !ok {
			out = append(out, uid)
		}
	}
	return out
}

// Resync has nothing to do: nobody needs repetition.
func (feed) Resync() error { return nil }
