// Package objects gives the kubelet the ConfigMaps, Secrets and ClusterTrustBundles its pods refer to. The Node
// authorizer lets a kubelet read only those ConfigMaps and Secrets, and watch them only one by one, so the cache holds
// one watch for each object while a pod refers to it. It tells at once which pods a change concerns.
package objects

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"bonsai/pkg/kubelet/notify"
)

// Client reads objects from the API server, one or, by a field selector, by list and watch.
type Client interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Objects(resource, namespace, field string) cache.ListerWatcher
	// TrustBundles lists and watches all ClusterTrustBundles.
	TrustBundles() cache.ListerWatcher
}

// Config is what a Cache needs. Client and Log are required.
type Config struct {
	Client Client
	Log    *slog.Logger
}

// Cache holds the objects of all tracked pods. Its methods are safe for concurrent use.
//
// The number of watches is that of different objects, whatever the number of pods.
type Cache struct {
	cfg     Config
	wake    notify.Signal
	bundles *bundles

	mu      sync.Mutex
	entries map[ref]*entry
	pods    map[types.UID][]ref
	pending []*entry // tracked, watch not started yet
}

// entry is one object: the pods that refer to it and what its watch last saw.
type entry struct {
	ref
	users  map[types.UID]bool // guarded by Cache.mu
	stop   chan struct{}      // closed when the last user is gone
	latest atomic.Pointer[metav1.Object]
}

// New checks the configuration and returns a Cache that watches nothing before Run.
func New(cfg Config) (*Cache, error) {
	if cfg.Client == nil || cfg.Log == nil {
		return nil, errors.New("objects: Client and Log are required")
	}
	return &Cache{cfg: cfg, wake: notify.New(), bundles: newBundles(cfg.Client, cfg.Log), entries: map[ref]*entry{},
		pods: map[types.UID][]ref{}}, nil
}

// Run keeps the watches until ctx is done and returns when all have ended. Without it every read asks the API server.
// changed is called after an object changed, appeared or vanished, with the UIDs of the pods that refer to it. It must
// not block.
//
// One goroutine starts the watches; each ends by itself when its last user is gone.
func (c *Cache) Run(ctx context.Context, changed func(pods []types.UID)) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	watches.Go(func() { c.bundles.run(ctx, changed) })
	for {
		c.mu.Lock()
		start := c.pending
		c.pending = nil
		c.mu.Unlock()
		for _, e := range start {
			watches.Go(func() { c.watch(ctx, e, changed) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
	}
}

// Track starts watching what the pod refers to. A pod whose spec changed may be tracked again.
//
// The pod's new references are added before old ones are dropped, so an object that both name keeps its watch.
func (c *Cache) Track(pod *corev1.Pod) {
	c.bundles.track(pod)
	refs := refsOf(pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.pods[pod.UID]
	for _, r := range refs {
		e := c.entries[r]
		if e == nil {
			e = &entry{ref: r, users: map[types.UID]bool{}, stop: make(chan struct{})}
			c.entries[r] = e
			c.pending = append(c.pending, e)
		}
		e.users[pod.UID] = true
	}
	if len(refs) > 0 {
		c.pods[pod.UID] = refs
	} else {
		delete(c.pods, pod.UID)
	}
	kept := make(map[ref]bool, len(refs))
	for _, r := range refs {
		kept[r] = true
	}
	for _, r := range before {
		if !kept[r] {
			c.dropLocked(r, pod.UID)
		}
	}
	c.wake.Notify()
}

// Untrack forgets a pod; objects no other pod refers to are watched no longer.
func (c *Cache) Untrack(uid types.UID) {
	c.bundles.untrack(uid)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.pods[uid] {
		c.dropLocked(r, uid)
	}
	delete(c.pods, uid)
}

func (c *Cache) dropLocked(r ref, uid types.UID) {
	e := c.entries[r]
	if e == nil {
		return
	}
	delete(e.users, uid)
	if len(e.users) == 0 {
		close(e.stop)
		delete(c.entries, r)
	}
}

// ConfigMap returns the ConfigMap as last seen, read-only; the error is apierrors.IsNotFound if there is none.
func (c *Cache) ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	obj, err := c.get(ctx, ref{configMap, namespace, name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.ConfigMap), nil
}

// Secret returns the Secret as last seen, read-only; the error is apierrors.IsNotFound if there is none.
func (c *Cache) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	obj, err := c.get(ctx, ref{secret, namespace, name})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Secret), nil
}

// TrustBundles returns the ClusterTrustBundles that a source of a tracked pod asks for, read-only and in no order. The
// error is apierrors.IsNotFound if the source names one that is not there; a source that selects may select none. Run
// must be running.
func (c *Cache) TrustBundles(ctx context.Context,
	ask *corev1.ClusterTrustBundleProjection) ([]*certificatesv1.ClusterTrustBundle, error) {
	return c.bundles.selected(ctx, ask)
}

// get answers from the watch, or asks the API server if the watch has seen nothing yet: absence is never answered from
// memory, because an object and the pod that needs it are often created in one go.
func (c *Cache) get(ctx context.Context, r ref) (metav1.Object, error) {
	c.mu.Lock()
	e := c.entries[r]
	c.mu.Unlock()
	if e != nil {
		if obj := e.latest.Load(); obj != nil {
			return *obj, nil
		}
	}
	obj, err := r.get(ctx, c.cfg.Client)
	if apierrors.IsNotFound(err) {
		return nil, apierrors.NewNotFound(corev1.Resource(r.kind.singular()), r.name)
	}
	return obj, err
}

// observe records what the watch saw (nil: nothing there) and returns the pods that refer to it if that is news.
//
// Only the goroutine of the entry's watch calls it, so the load and the store need no lock.
func (c *Cache) observe(e *entry, obj metav1.Object) []types.UID {
	before := e.latest.Load()
	if obj == nil {
		e.latest.Store(nil)
	} else {
		e.latest.Store(&obj)
	}
	switch {
	case before == nil && obj == nil:
		return nil
	case before != nil && obj != nil && (*before).GetResourceVersion() == obj.GetResourceVersion() &&
		(*before).GetUID() == obj.GetUID():
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	pods := make([]types.UID, 0, len(e.users))
	for uid := range e.users {
		pods = append(pods, uid)
	}
	return pods
}
