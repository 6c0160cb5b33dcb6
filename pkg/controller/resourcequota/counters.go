package resourcequota

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"bonsai/api/quota"
	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
)

const (
	// patience is how long the first list of a resource is waited for before the others are counted without it.
	patience = 2 * time.Second
	// rediscover is how long the server's list of resources holds when one is looked for in vain.
	rediscover = 30 * time.Second
)

// known reports whether the number of a resource's objects is known.
type known int

const (
	yes known = iota
	// notYet: its watch has only begun.
	notYet
	// unserved: the server does not have it.
	unserved
	// silent: the server does not answer for it.
	silent
)

// counters count the objects of the resources that quotas name, whatever their kind. A resource is watched from the
// time that a quota first names it until none does.
type counters struct {
	controller.Deps
	metadata metadata.Interface
	changed  func(ns string, gr schema.GroupResource, after time.Duration)
	watches  sync.WaitGroup

	mu      sync.Mutex
	byName  map[schema.GroupResource]*counter
	catalog *served.Catalog
	asked   time.Time
}

type counter struct {
	*controller.Monitor
	started time.Time
}

func newCounters(d controller.Deps, m metadata.Interface,
	changed func(string, schema.GroupResource, time.Duration)) *counters {
	return &counters{Deps: d, metadata: m, changed: changed, byName: map[schema.GroupResource]*counter{}}
}

// count returns the number of objects of gr in ns.
func (c *counters) count(ctx context.Context, ns string, gr schema.GroupResource) (int, known, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.byName[gr]
	if m == nil {
		var err error
		if m, err = c.start(ctx, gr); m == nil {
			return 0, unserved, err
		}
	}
	switch {
	case m.Synced():
		return m.Count(ns), yes, nil
	case c.Now().Sub(m.started) < patience:
		return 0, notYet, nil
	}
	return 0, silent, nil
}

// start begins to watch gr; nil if the server does not have it. c.mu is held.
func (c *counters) start(ctx context.Context, gr schema.GroupResource) (*counter, error) {
	r, ok, err := c.find(ctx, gr)
	if err != nil || !ok || !r.Namespaced || !r.Has("list", "watch") || quota.Ignored(gr) {
		return nil, err
	}
	m := &counter{started: c.Now(), Monitor: controller.NewMonitor(r.GroupVersionResource,
		func(o metav1.Object, fresh bool) {
			if fresh {
				c.changed(o.GetNamespace(), gr, healing)
			}
		},
		func(ns string, _ types.UID) { c.changed(ns, gr, 0) },
	)}
	if err := m.Follow(ctx, c.Informers, c.metadata, &c.watches, c.Log); err != nil {
		return nil, fmt.Errorf("watching %s: %w", gr, err)
	}
	c.byName[gr] = m
	return m, nil
}

// find looks gr up in what the server serves, asking again now and then if it is not there.
func (c *counters) find(ctx context.Context, gr schema.GroupResource) (served.Resource, bool, error) {
	if c.catalog != nil {
		if r, ok := c.catalog.ForResource(gr); ok || c.Now().Sub(c.asked) < rediscover {
			return r, ok, nil
		}
	}
	catalog, err := served.Read(ctx, c.Client)
	if catalog == nil {
		return served.Resource{}, false, err
	}
	if err != nil { // some groups do not answer; the others are known
		c.Log.Warn("discovery failed in part", "err", err)
	}
	c.catalog, c.asked = catalog, c.Now()
	r, ok := catalog.ForResource(gr)
	return r, ok, nil
}

// keep stops the watches of what none of the quotas names any more.
func (c *counters) keep(quotas []*corev1.ResourceQuota) {
	named := map[schema.GroupResource]bool{}
	for _, q := range quotas {
		for gr := range counted(q) {
			named[gr] = true
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for gr, m := range c.byName {
		if !named[gr] {
			m.Stop()
			delete(c.byName, gr)
		}
	}
}
