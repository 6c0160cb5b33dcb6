// Package catalog is the one place that knows what the server serves. Routing, stores, discovery, OpenAPI and admission
// read it, and resources come and go while they do.
//
// A Snapshot is all that is served at one moment and does not change. Add and Remove make the next one and put it in
// the place of the last: a reader loads one pointer, takes no lock, and never sees half of a change. A request takes
// the snapshot of the moment it came and sees it to its end.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
)

// Config is what a catalog tells of its changes.
type Config struct {
	// Facts learns how the facts of each stored resource are read, and forgets it with the resource. Required.
	Facts *storage.FactsTable
	// Off reports whether a resource of the server's own is not served in a version; nil: all are. The server itself
	// goes on reading what is off.
	Off func(schema.GroupVersionResource) bool
	// Forget drops what is cached under the prefix of a resource that is gone; nil: nothing is cached.
	Forget func(prefix string)
}

// Catalog is what the server serves. It is safe for concurrent use.
type Catalog struct {
	cfg Config
	ctx context.Context // ends with the server, and the contexts of all resources with it

	mu  sync.Mutex // one change at a time
	now atomic.Pointer[Snapshot]
}

var _ registry.Stores = (*Catalog)(nil)

// New returns a catalog of nothing. The contexts of its resources end with ctx.
func New(ctx context.Context, cfg Config) (*Catalog, error) {
	if cfg.Facts == nil {
		return nil, errors.New("new catalog: a table of facts is needed")
	}
	if cfg.Forget == nil {
		cfg.Forget = func(string) {}
	}
	if cfg.Off == nil {
		cfg.Off = func(schema.GroupVersionResource) bool { return false }
	}
	c := &Catalog{cfg: cfg, ctx: ctx}
	c.now.Store(newSnapshot(0, nil))
	return c, nil
}

// serve puts next in the place of what is served, and tells who waits for that. The caller holds mu.
func (c *Catalog) serve(next *Snapshot) {
	close(c.now.Swap(next).over)
}

// Snapshot is what is served now.
func (c *Catalog) Snapshot() *Snapshot { return c.now.Load() }

// Context ends with the server.
func (c *Catalog) Context() context.Context { return c.ctx }

// Of returns what was served when the request of info came. One that no catalog has seen is served nothing.
func Of(info *request.Info) *Snapshot {
	if s, ok := info.Served.(*Snapshot); ok {
		return s
	}
	return &Snapshot{}
}

// Store implements registry.Stores for what is served now.
func (c *Catalog) Store(gr schema.GroupResource) registry.Store {
	if r := c.Snapshot().Resource(gr); r != nil && r.Store != nil {
		return r.Store
	}
	return nil
}

// Add serves further resources, all of them or, on an error, none. Views may come with the rows that they show. The
// entries belong to the catalog from then on.
func (c *Catalog) Add(entries ...Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.Snapshot()
	all := append([]*Resource(nil), was.resources...)
	added := make([]*Resource, 0, len(entries))
	for _, e := range entries {
		r, err := c.admit(all, e)
		if err != nil {
			for _, r := range added {
				r.end()
			}
			return fmt.Errorf("serve %s: %w", e.Row.GroupResource(), err)
		}
		all, added = append(all, r), append(added, r)
	}
	for _, r := range added { // before anyone can read them: what is cached without its facts matches no selector
		if r.Store != nil && r.Row.Stored == nil {
			c.cfg.Facts.Register(registry.Prefix(r.Row), r.Store.Codec().FactsOf)
		}
	}
	c.serve(newSnapshot(was.generation+1, all))
	return nil
}

// Replace serves e in place of the resource that has its name: one moment the old one, the next the new one, all that
// is served else staying as it is. If e has the store of the old one, only what is said of the resource changes; else
// the old one ends as one that is removed: its watches end, and what is cached of it goes. Nothing may be a view of the
// resource.
func (c *Catalog) Replace(e Entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, gr := c.Snapshot(), e.Row.GroupResource()
	old := was.Resource(gr)
	if old == nil {
		return fmt.Errorf("replace %s: it is not served", gr)
	}
	at := slices.Index(was.resources, old)
	r, err := c.admit(slices.Delete(slices.Clone(was.resources), at, at+1), e)
	if err != nil {
		return fmt.Errorf("replace %s: %w", gr, err)
	}
	all := slices.Clone(was.resources)
	all[at] = r
	if r.Store == old.Store {
		r.end()
		r.ctx, r.end = old.ctx, old.end
		c.serve(newSnapshot(was.generation+1, all))
		return nil
	}
	if r.Store != nil {
		c.cfg.Facts.Register(registry.Prefix(r.Row), r.Store.Codec().FactsOf)
	}
	c.serve(newSnapshot(was.generation+1, all))
	old.end()
	if old.Store != nil {
		if before := registry.Prefix(old.Row); r.Store == nil || before != registry.Prefix(r.Row) {
			c.cfg.Facts.Unregister(before)
			c.cfg.Forget(before)
		}
	}
	if r.Store != nil {
		c.cfg.Forget(registry.Prefix(r.Row)) // whose facts were read as the old one's
	}
	return nil
}

// Remove serves these resources no longer, or, on an error, all as before. When it returns, no new request reaches
// them, their watches are ending, and nothing of them is kept in memory. Requests under way go on with what they have.
func (c *Catalog) Remove(which ...schema.GroupResource) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.Snapshot()
	gone := map[*Resource]bool{}
	for _, gr := range which {
		r := was.Resource(gr)
		if r == nil {
			return fmt.Errorf("stop serving %s: it is not served", gr)
		}
		gone[r] = true
	}
	var kept []*Resource
	for _, r := range was.resources {
		if gone[r] {
			continue
		}
		if behind := stored(was.resources, r.Row); r.Row.Stored != nil && gone[behind] {
			return fmt.Errorf("stop serving %s: %s shows its objects", behind.Row.GroupResource(),
				r.Row.GroupResource())
		}
		kept = append(kept, r)
	}
	c.serve(newSnapshot(was.generation+1, kept))
	for r := range gone {
		r.end() // before the cache goes: a watch ends as one that is over, not as one that has lost its place
	}
	for r := range gone {
		if r.Store != nil && r.Row.Stored == nil {
			prefix := registry.Prefix(r.Row)
			c.cfg.Facts.Unregister(prefix) // first: who comes late must not cache it again
			c.cfg.Forget(prefix)
		}
	}
	return nil
}
