package garbagecollector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

// patience is how long the collector waits for the first list of a resource before it works without it, and how long it
// keeps watching a resource that discovery no longer names. Without the first bound one broken aggregated API would
// stop foreground deletion and orphaning in the whole cluster.
const patience = 30 * time.Second

// monitor feeds the graph from the watch of one resource.
type monitor struct {
	*controller.Monitor
	started time.Time
	// unserved is since when the resource is served no more; zero while it is.
	unserved time.Time
}

// monitor starts watching one resource; c.mu is held.
//
// Where a controller caches the resource already the handlers run on the goroutine of that informer, else on one that
// watches joins. They take the mutex of the graph, never c.mu.
func (c *Controller) monitor(ctx context.Context, r served.Resource) error {
	gvr, kind := r.GroupVersionResource, r.GroupVersion().WithKind(r.Kind)
	seen := func(o metav1.Object, _ bool) {
		id := identity{resource: gvr, kind: kind, namespace: o.GetNamespace(), name: o.GetName(), uid: o.GetUID()}
		c.apply(c.graph.observe(id, o))
		c.resourceChanged(gvr)
	}
	gone := func(_ string, uid types.UID) {
		c.apply(c.graph.remove(uid))
		c.resourceChanged(gvr)
	}
	m := &monitor{Monitor: controller.NewMonitor(gvr, seen, gone), started: c.Now()}
	if err := m.Follow(ctx, c.Informers, c.metadata, &c.watches, c.Log); err != nil {
		return err
	}
	c.monitors[gvr] = m
	return nil
}

// ready reports whether the graph has what the resource held at the start, or has waited for it long enough.
func (m *monitor) ready(now time.Time) bool {
	return m.Synced() || !m.unserved.IsZero() || now.Sub(m.started) > patience
}

// over reports whether a resource has not been served for longer than patience. Until then the watch may still report
// the deletion of its last objects, whose dependents must be collected too. c.mu is held: it writes unserved.
func (m *monitor) over(served bool, now time.Time) bool {
	switch {
	case served:
		m.unserved = time.Time{}
	case m.unserved.IsZero():
		m.unserved = now
	}
	return !served && now.Sub(m.unserved) > patience
}

// resourceChanged asks for a new discovery when a definition of resources changes, instead of waiting for the next
// tick. It never blocks: the goroutine of a watch calls it.
func (c *Controller) resourceChanged(gvr schema.GroupVersionResource) {
	if gvr.Resource != "customresourcedefinitions" && gvr.Resource != "apiservices" {
		return
	}
	select {
	case c.kick <- struct{}{}:
	default:
	}
}
