package served

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
)

// finderAge is how long what the server serves is remembered: kinds come and go.
const finderAge = 10 * time.Second

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
	return f.find(ctx, &meta.NoKindMatchError{GroupKind: kind.GroupKind(), SearchedVersions: []string{kind.Version}}, func(c *Catalog) (Resource, bool) {
		return c.ForKind(kind)
	})
}

// ForGroupKind finds the resource of a kind in the version that the server prefers, or a *meta.NoKindMatchError.
func (f *Finder) ForGroupKind(ctx context.Context, kind schema.GroupKind) (Resource, error) {
	return f.find(ctx, &meta.NoKindMatchError{GroupKind: kind}, func(c *Catalog) (Resource, bool) { return c.ForGroupKind(kind) })
}

func (f *Finder) find(ctx context.Context, none *meta.NoKindMatchError, in func(*Catalog) (Resource, bool)) (Resource, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.catalog == nil || f.now().Sub(f.from) > finderAge {
		// A catalog without the groups that are down is enough for the others.
		catalog, err := f.read(ctx)
		if catalog == nil {
			return Resource{}, err
		}
		f.catalog, f.from = catalog, f.now()
	}
	if r, ok := in(f.catalog); ok {
		return r, nil
	}
	return Resource{}, none
}
