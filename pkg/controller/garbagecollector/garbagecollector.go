// Package garbagecollector deletes objects whose owners are gone, for every resource the API server serves, and carries
// out the two other ways to delete an owner: in the foreground (dependents first) and orphaning (dependents stay).
//
// It keeps a graph of all objects by uid and owner reference, fed by watches of metadata. The graph only says what to
// look at; before anything is deleted the object and its owners are read from the server.
//
// The rules are those of https://kubernetes.io/docs/concepts/architecture/garbage-collection/. Work flows one way: the
// watches change the graph, the graph names objects that need a look (todo), and two loops take these from their
// queues. The goroutine of a watch never waits for the API server.
package garbagecollector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

// rediscover is how often the list of resources is read again. Changes of CustomResourceDefinitions and APIServices
// cause that at once.
const rediscover = 30 * time.Second

// Controller is the garbage collector.
type Controller struct {
	controller.Deps
	// metadata reads and writes metadata of any kind; no other part of an object crosses the wire.
	metadata metadata.Interface
	graph    *graph
	// check takes objects that may have lost their owners or their dependents, orphan takes owners whose dependents
	// stay. Two queues, because an owner with thousands of dependents occupies its worker for as many requests.
	check  *controller.Loop[types.UID]
	orphan *controller.Loop[types.UID]
	// kick holds at most one request to read discovery again: any number of changes cost one round.
	kick     chan struct{}
	absent   *absences
	unsynced prometheus.Counter

	// mu guards catalog and monitors. It is held during a whole sync except for the requests of discovery, and the
	// handlers of watches never take it.
	mu       sync.Mutex
	catalog  *served.Catalog
	monitors map[schema.GroupVersionResource]*monitor
	watches  sync.WaitGroup
}

// New returns the controller. Build it after all others: it shares the caches that they asked for.
func New(d controller.Deps) (*Controller, error) {
	m, err := served.Metadata(d.Client)
	if err != nil {
		return nil, err
	}
	c := &Controller{
		Deps: d, metadata: m, graph: newGraph(), kick: make(chan struct{}, 1), absent: newAbsences(),
		monitors: map[schema.GroupVersionResource]*monitor{},
		unsynced: prometheus.NewCounter(
			prometheus.CounterOpts{Subsystem: "garbagecollector_controller", Name: "resources_sync_error_total",
				Help: "Times that the resources of the API server could not all be discovered or watched."}),
	}
	d.Metrics.Register(c.unsynced)
	c.check = controller.NewLoop(
		controller.LoopConfig{Name: "garbage_collector_attempt_to_delete", Workers: d.Workers, Log: d.Log,
			Metrics: d.Metrics}, c.Reconcile)
	c.orphan = controller.NewLoop(
		controller.LoopConfig{Name: "garbage_collector_attempt_to_orphan", Workers: d.Workers, Log: d.Log,
			Metrics: d.Metrics}, c.release)
	return c, nil
}

// Run collects until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.start(ctx) {
		return nil
	}
	var all sync.WaitGroup
	// Nothing is deleted before every watch has delivered its first list, or has been waited for long enough: an owner
	// that is merely not known yet costs a lookup, a dependent that is not known would be left behind.
	c.check.WaitFor(c.complete)
	c.orphan.WaitFor(c.complete)
	all.Go(func() { _ = c.check.Run(ctx) })
	all.Go(func() { _ = c.orphan.Run(ctx) })
	// This goroutine is the only one that calls sync from here on; start called it before any loop ran.
	c.followDiscovery(ctx)
	all.Wait()
	c.watches.Wait()
	return nil
}

// start tries until discovery has answered once, with a delay of 50 ms that doubles up to 5 s. It returns false when
// ctx ends first.
func (c *Controller) start(ctx context.Context) bool {
	for delay := 50 * time.Millisecond; ; delay = min(2*delay, 5*time.Second) {
		err := c.sync(ctx)
		if err == nil {
			return true
		}
		c.Log.Warn("discovery failed, trying again", "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(delay):
		}
	}
}

// followDiscovery reads discovery again at every tick and kick until ctx ends. A failure keeps the watches as they are.
func (c *Controller) followDiscovery(ctx context.Context) {
	tick := time.NewTicker(rediscover)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.kick:
		}
		if err := c.sync(ctx); err != nil && ctx.Err() == nil {
			c.Log.Warn("discovery failed", "err", err)
		}
	}
}

// sync starts watches for the resources that can be listed, watched and deleted, and ends those of resources that have
// not been served for a while. Partial discovery (an aggregated API that does not answer) adds what it knows and ends
// no watch: a group that is silent is not a group that is gone. It fails only if nothing could be learned.
func (c *Controller) sync(ctx context.Context) error {
	catalog, err := served.Read(ctx, c.Client)
	partial := err != nil
	if partial {
		c.unsynced.Inc()
	}
	if catalog == nil {
		return err
	}
	wanted := map[schema.GroupVersionResource]served.Resource{}
	for _, r := range catalog.Resources {
		// Events are left out, as upstream leaves them out: they expire by themselves, own nothing, and are the most
		// frequent objects of a cluster.
		if r.Has("list", "watch", "delete") && r.Resource != "events" {
			wanted[r.GroupVersionResource] = r
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.catalog = catalog
	for gvr, m := range c.monitors {
		if _, ok := wanted[gvr]; m.over(ok || partial, c.Now()) {
			m.Stop()
			delete(c.monitors, gvr)
			c.graph.leave(gvr)
		}
	}
	for gvr, r := range wanted {
		if c.monitors[gvr] == nil {
			if err := c.monitor(ctx, r); err != nil {
				c.unsynced.Inc()
				return fmt.Errorf("watching %s: %w", gvr, err)
			}
		}
	}
	return nil
}

// complete reports whether the graph holds everything that is watched.
//
// It is asked before every step that needs all dependents, not once: a resource that is new since the start makes it
// false again until its first list is there.
func (c *Controller) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	for _, m := range c.monitors {
		if !m.ready(now) {
			return false
		}
	}
	return true
}

// apply queues what the graph asks for. The lock of the graph is free by then; the queues drop duplicates.
func (c *Controller) apply(t todo) {
	for _, uid := range slices.Compact(t.check) {
		c.check.Add(uid)
	}
	for _, uid := range t.orphan {
		c.orphan.Add(uid)
	}
}

// resourceOf finds where a kind is served. It knows what the last discovery knew.
func (c *Controller) resourceOf(gvk schema.GroupVersionKind) (served.Resource, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.catalog == nil {
		return served.Resource{}, false
	}
	return c.catalog.ForKind(gvk)
}
