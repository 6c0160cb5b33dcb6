package controller

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/apiclient"
)

// Informers are the caches that the controllers of one process share: one watch per kind and selection, however many
// read it.
type Informers struct {
	client *apiclient.Client

	mu    sync.Mutex
	byKey map[informerKey]any
	run   []cache.SharedIndexInformer
}

type informerKey struct {
	gvr       schema.GroupVersionResource
	selection apiclient.Selection
}

// NewInformers returns caches that are filled with c's identity, once Run was called.
func NewInformers(c *apiclient.Client) *Informers {
	return &Informers{client: c, byKey: map[informerKey]any{}}
}

// Run fills the caches until ctx ends and returns when all of them stopped. Ask for every informer before.
func (f *Informers) Run(ctx context.Context) {
	f.mu.Lock()
	var all sync.WaitGroup
	for _, i := range f.run {
		all.Go(func() { i.RunWithContext(ctx) })
	}
	f.mu.Unlock()
	all.Wait()
}

// Shared returns the unfiltered informer of a resource if some controller asked for one, else nil.
func (f *Informers) Shared(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.byKey[informerKey{gvr: gvr}].(interface {
		Raw() cache.SharedIndexInformer
	}); ok {
		return i.Raw()
	}
	return nil
}

// Informer is the cache of one kind. What it returns is shared: DeepCopy before changing it.
type Informer[T apiclient.Object] struct {
	raw   cache.SharedIndexInformer
	live  *apiclient.Resource[T]
	store cache.Indexer
	mu    sync.Mutex // held while an index is added
}

// The indices that every informer has. All others are made with NewIndex by the packages that read them.
const (
	byNamespace = cache.NamespaceIndex
	byOwner     = "controller"
)

// InformerFor returns the shared informer for what kind (core.Pods, apps.Deployments, …) names.
func InformerFor[T apiclient.Object](f *Informers, kind func(*apiclient.Client) *apiclient.Resource[T]) *Informer[T] {
	return FilteredInformerFor(f, kind, apiclient.Selection{})
}

// FilteredInformerFor is InformerFor for the selected objects.
func FilteredInformerFor[T apiclient.Object](f *Informers, kind func(*apiclient.Client) *apiclient.Resource[T],
	s apiclient.Selection) *Informer[T] {
	r := kind(f.client)
	key := informerKey{r.GVR(), s}
	f.mu.Lock()
	defer f.mu.Unlock()
	if i, ok := f.byKey[key]; ok {
		return i.(*Informer[T])
	}
	raw := cache.NewSharedIndexInformerWithOptions(r.ListWatch(s), r.New(), cache.SharedIndexInformerOptions{
		Indexers:          cache.Indexers{byNamespace: cache.MetaNamespaceIndexFunc, byOwner: indexByOwner},
		ObjectDescription: r.GVR().String(),
	})
	// SetTransform fails only after the start.
	_ = raw.SetTransform(slim)
	i := &Informer[T]{raw: raw, live: r, store: raw.GetIndexer()}
	f.byKey[key] = i
	f.run = append(f.run, raw)
	return i
}

// slim drops what no controller reads.
func slim(obj any) (any, error) {
	if m, err := meta.Accessor(obj); err == nil {
		m.SetManagedFields(nil)
	}
	return obj, nil
}

// Raw is the client-go informer below.
func (i *Informer[T]) Raw() cache.SharedIndexInformer { return i.raw }

// Get returns the object as cached, and whether it is there.
func (i *Informer[T]) Get(key Key) (T, bool) {
	var none T
	o, ok, err := i.store.GetByKey(cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String())
	if err != nil || !ok {
		return none, false
	}
	return o.(T), true
}

// Seen is the resourceVersion up to which the cache shows all changes; "" if that is not known. Ask for it before
// reading what is to be judged by it.
func (i *Informer[T]) Seen() string { return i.store.LastStoreSyncResourceVersion() }

// Live reads the object from the server, past the cache and with the identity that fills it, and reports whether it is
// there.
func (i *Informer[T]) Live(ctx context.Context, key Key) (T, bool, error) {
	var none T
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, key.Name).String()}
	// A list, because a client that may watch a kind may list it, but not always get it.
	found, err := i.live.List(ctx, key.Namespace, opts)
	if err != nil || len(found) == 0 {
		return none, false, err
	}
	return found[0], true, nil
}

// List returns all cached objects.
func (i *Informer[T]) List() []T { return cast[T](i.store.List()) }

// InNamespace returns the cached objects of a namespace.
func (i *Informer[T]) InNamespace(ns string) []T {
	all, _ := i.store.ByIndex(byNamespace, ns)
	return cast[T](all)
}

// OwnedBy returns the cached objects whose controller has this uid.
func (i *Informer[T]) OwnedBy(uid types.UID) []T {
	all, _ := i.store.ByIndex(byOwner, string(uid))
	return cast[T](all)
}

// Orphans returns the cached objects of a namespace that have no controller.
func (i *Informer[T]) Orphans(ns string) []T {
	all, _ := i.store.ByIndex(byOwner, orphansOf(ns))
	return cast[T](all)
}

func cast[T any](in []any) []T {
	out := make([]T, len(in))
	for i, o := range in {
		out[i] = o.(T)
	}
	return out
}

// Handlers are the reactions to changes; nil ones are skipped. An Update has both states: what just went is in old.
type Handlers[T apiclient.Object] struct {
	Add    func(obj T)
	Update func(old, obj T)
	Delete func(obj T)
}

// All returns handlers that treat every change alike.
func All[T apiclient.Object](f func(obj T)) Handlers[T] {
	return Handlers[T]{Add: f, Update: func(_, obj T) { f(obj) }, Delete: f}
}

// Watch makes the changes of an informer call h, and l wait until h has seen all that is there at the start. An object
// that took the place of another one of its name while the watch was broken is a deletion and an addition, not an
// update.
func Watch[K comparable, T apiclient.Object](l *Loop[K], i *Informer[T], h Handlers[T]) error {
	reg, err := i.raw.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if h.Add != nil {
				h.Add(o.(T))
			}
		},
		UpdateFunc: func(old, o any) {
			was, is := old.(T), o.(T)
			switch {
			case was.GetUID() == is.GetUID() && h.Update != nil:
				h.Update(was, is)
			case was.GetUID() != is.GetUID():
				if h.Delete != nil {
					h.Delete(was)
				}
				if h.Add != nil {
					h.Add(is)
				}
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if obj, ok := o.(T); ok && h.Delete != nil {
				h.Delete(obj)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching %s: %w", i.live.GVR(), err)
	}
	l.WaitFor(reg.HasSynced)
	return nil
}

// WatchKeys makes every change of an informer's object add its own key to l.
func WatchKeys[T apiclient.Object](l *Loop[Key], i *Informer[T]) error {
	return Watch(l, i, All(func(o T) { l.Add(KeyOf(o)) }))
}

// Ending reports whether a namespace is being deleted, as far as the cache knows: nothing can be created in it any
// more.
func Ending(namespaces *Informer[*corev1.Namespace], name string) bool {
	ns, ok := namespaces.Get(Key{Name: name})
	return ok && (ns.DeletionTimestamp != nil || ns.Status.Phase == corev1.NamespaceTerminating)
}

// KeyOf names an object.
func KeyOf(o apiclient.Object) Key { return Key{Namespace: o.GetNamespace(), Name: o.GetName()} }
