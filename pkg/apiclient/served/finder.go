package served

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
)

// What the server serves is remembered for finderAge, as kinds come and go, and for finderStale while it cannot be read
// again.
const (
	finderAge   = 10 * time.Second
	finderStale = 5 * time.Minute
)

// Finder finds what kinds are served as, and remembers for a while what the server said. It is safe for concurrent use.
type Finder struct {
	read func(context.Context) (*Catalog, error)
	now  func() time.Time

	mu      sync.Mutex
	catalog *Catalog
	from    time.Time
}

// NewFinder returns a finder that has asked nothing yet. read is By(client), but in tests.
func NewFinder(read func(context.Context) (*Catalog, error), now func() time.Time) *Finder {
	return &Finder{read: read, now: now}
}

// By is Read by a client.
func By(c *apiclient.Client) func(context.Context) (*Catalog, error) {
	return func(ctx context.Context) (*Catalog, error) { return Read(ctx, c) }
}

// ForKind finds the resource of a kind, or a *meta.NoKindMatchError.
func (f *Finder) ForKind(ctx context.Context, kind schema.GroupVersionKind) (Resource, error) {
	return f.find(ctx, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}},
		func(c *Catalog) (Resource, bool) {
			return c.ForKind(kind)
		})
}

// ForGroupKind finds the resource of a kind in the version that the server prefers, or a *meta.NoKindMatchError.
func (f *Finder) ForGroupKind(ctx context.Context, kind schema.GroupKind) (Resource, error) {
	return f.find(ctx, &meta.NoKindMatchError{GroupKind: kind}, func(c *Catalog) (Resource, bool) {
		return c.ForGroupKind(kind)
	})
}

func (f *Finder) find(ctx context.Context, none *meta.NoKindMatchError, in func(*Catalog) (Resource, bool)) (Resource,
	error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	catalog, err := f.newest(ctx)
	if catalog == nil {
		return Resource{}, err
	}
	if r, ok := in(catalog); ok {
		return r, nil
	}
	if err != nil { // the kind may have come since
		return Resource{}, err
	}
	return Resource{}, none
}

// newest is the catalog to look into. With an error it is one that ought to be read again and cannot be, or nil. f.mu
// is held.
func (f *Finder) newest(ctx context.Context) (*Catalog, error) {
	age := f.now().Sub(f.from)
	if f.catalog != nil && age <= finderAge {
		return f.catalog, nil
	}
	// A catalog without the groups that are down is enough for the others.
	catalog, err := f.read(ctx)
	if catalog != nil {
		f.catalog, f.from = catalog, f.now()
		return catalog, nil
	}
	if age > finderStale {
		return nil, err
	}
	return f.catalog, err
}
