package watchcache

import (
	"context"

	"bonsai/pkg/apiserver/storage"
)

// prepare makes sure that a draft has its facts, so that the change that comes back need not be read, and announces it.
// It must run before the write: the hub may deliver the change before the backend has answered the writer.
func (c *Cache) prepare(r *resource, key string, d storage.Draft) (storage.Draft, *write, error) {
	facts, err := c.cfg.Facts.Of(key, d)
	if err != nil {
		return d, nil, err
	}
	d.Facts = &facts
	if r == nil {
		return d, nil, nil
	}
	return d, r.writes.begin(key, d), nil
}

// finish ends what prepare announced. A write whose outcome is unknown (ErrTimeout) is taken back like one that failed.
// If it happened after all, its change is decoded like one of another server.
func (c *Cache) finish(r *resource, key string, w *write, item *storage.Item, err error) (*storage.Item, error) {
	if r == nil {
		return item, err
	}
	if err != nil {
		r.writes.cancel(key, w)
		return nil, err
	}
	return r.writes.end(w, item, c.reached(r)), nil
}

// Create implements storage.Interface.
func (c *Cache) Create(ctx context.Context, key string, d storage.Draft) (*storage.Item, error) {
	// A resource that is not cached, or is loading, is written all the same: a write never waits for a cache.
	r := c.cached(key)
	d, w, err := c.prepare(r, key, d)
	if err != nil {
		return nil, err
	}
	item, err := c.backend.Create(ctx, key, d)
	return c.finish(r, key, w, item, err)
}

// hint is the cached item to try a write on first; nil if there is none at hand. It may be old: the backend writes only
// if the key still has the hint's revision, and reads the newest item otherwise.
func (r *resource) hint(key string) *storage.Item {
	if r == nil {
		return nil
	}
	item, _ := r.get(key) // a dropped cache has no hint
	if item != nil && item.Sealed() {
		return nil
	}
	return item
}

// Update implements storage.Interface.
func (c *Cache) Update(ctx context.Context, key string,
	change func(*storage.Item) (storage.Draft, error)) (*storage.Item, error) {
	r := c.cached(key)
	var w *write
	item, err := c.backend.UpdateFrom(ctx, r.hint(key), key, func(current *storage.Item) (storage.Draft, error) {
		// The backend calls this again when the last draft lost to another write. That draft will not come back.
		if w != nil {
			r.writes.cancel(key, w)
			w = nil
		}
		d, err := change(current)
		if err != nil {
			return d, err
		}
		d, w, err = c.prepare(r, key, d)
		return d, err
	})
	return c.finish(r, key, w, item, err)
}

// Discard implements storage.Interface. The backend knows best what can be read.
func (c *Cache) Discard(ctx context.Context, key string, decodes func(*storage.Item) bool, dry bool) (int64, error) {
	return c.backend.Discard(ctx, key, decodes, dry)
}

// Delete implements storage.Interface. It announces nothing: a deletion has no bytes that need decoding.
func (c *Cache) Delete(ctx context.Context, key string, check func(*storage.Item) error) (*storage.Item, error) {
	return c.backend.DeleteFrom(ctx, c.cached(key).hint(key), key, check)
}
