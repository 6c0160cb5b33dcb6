package controller

import (
	"context"
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/served"
)

// Monitor follows all objects of one resource, of any kind the server has, for those who need no more than metadata.
// Where controllers cache the resource already it shares their watch; else it watches metadata only. It keeps no
// objects.
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
func NewMonitor(gvr schema.GroupVersionResource, seen func(o metav1.Object, fresh bool),
	gone func(namespace string, uid types.UID)) *Monitor {
	return &Monitor{gvr: gvr, seen: seen, gone: gone, known: map[types.UID]string{}, counts: map[string]int{}}
}

// Follow begins to watch, as one of watches, until ctx ends or Stop is called.
func (m *Monitor) Follow(ctx context.Context, informers *Informers, c metadata.Interface, watches *sync.WaitGroup,
	log *slog.Logger) error {
	if shared := informers.Shared(m.gvr); shared != nil {
		return m.share(shared)
	}
	ctx, m.stop = context.WithCancel(ctx)
	watches.Go(func() { apiclient.Follow(ctx, served.MetadataListWatch(c, m.gvr), m.gvr.String(), feed{m}, log) })
	return nil
}

// Stop ends what Follow began.
func (m *Monitor) Stop() { m.stop() }

// Synced reports whether the monitor has seen all that was there when it began.
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
	reg, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { m.take(o.(metav1.Object)) },
		UpdateFunc: func(old, o any) {
			was, is := old.(metav1.Object), o.(metav1.Object)
			if was.GetUID() != is.GetUID() {
				m.forget(was.GetUID())
			}
			m.take(is)
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			m.forget(o.(metav1.Object).GetUID())
		},
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

// remember reports whether the object is new.
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

// take notes a new or changed object.
func (m *Monitor) take(o metav1.Object) { m.seen(o, m.remember(o)) }

// feed is a Monitor that watches for itself.
type feed struct{ *Monitor }

var _ apiclient.Sink[*metav1.PartialObjectMetadata] = feed{}

// Set takes in a new or changed object.
func (f feed) Set(o *metav1.PartialObjectMetadata) { f.take(o) }

// Delete takes an object out.
func (f feed) Delete(o *metav1.PartialObjectMetadata) { f.forget(o.UID) }

// Replace takes in a whole list; what is not in it is gone.
func (f feed) Replace(all []*metav1.PartialObjectMetadata) {
	here := make(map[types.UID]struct{}, len(all))
	for _, o := range all {
		f.take(o)
		here[o.UID] = struct{}{}
	}
	for _, uid := range f.absent(here) {
		f.forget(uid)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = func() bool { return true }
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
