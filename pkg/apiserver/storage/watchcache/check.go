package watchcache

import (
	"fmt"
	"time"

	"bonsai/pkg/apiserver/storage"
)

// sweepEvery is how often encodings that nobody reads are looked for, and changes that are too old.
const sweepEvery = time.Minute

// sweep sweeps every cached resource, every sweepEvery. It is one goroutine of the cache, and check is another.
func (c *Cache) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, r := range *c.resources.Load() {
				r.sweep(now)
			}
		case <-c.ctx.Done():
			return
		}
	}
}

// check compares every cached resource with the backend, every CheckInterval. It is a safety net: a difference would be
// a fault of the hub or of the storage, and clients would work on wrong objects until a restart.
func (c *Cache) check() {
	tick := time.NewTicker(c.cfg.CheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
		for _, r := range *c.resources.Load() {
			if err := c.compare(r); err != nil && c.ctx.Err() == nil {
				c.cfg.Log.Warn("a cache could not be compared with the storage", "prefix", r.prefix, "err", err)
			}
		}
	}
}

// compare compares the keys and revisions of r with the backend's as of the same revision. On a difference it says so
// and drops the cache, which the next user rebuilds. That revision is the newest: an idle cache may be at one that the
// backend has forgotten long ago. Only keys and revisions travel, not values. The lock is not held: the snapshot stands
// still while the resource goes on.
func (c *Cache) compare(r *resource) error {
	select {
	case <-r.ready:
	default:
		return nil
	}
	// A failure here, or of the sum, proves nothing about the cache, which stays.
	if err := c.fresh(c.ctx, r); err != nil {
		return fmt.Errorf("watchcache: follow %s to the newest revision: %w", r.prefix, err)
	}
	s, revision, err := r.snapshot(max(c.reached(r), r.base))
	if err != nil {
		return nil // dropped already
	}
	want, err := c.backend.Fingerprint(c.ctx, r.prefix, revision)
	if err != nil {
		return fmt.Errorf("watchcache: sum up %s at revision %d: %w", r.prefix, revision, err)
	}
	var have storage.Fingerprint
	for item := range s.from(r.prefix, r.prefix) {
		have.Add(item.Key, item.Revision)
	}
	if have != want {
		c.cfg.Log.Error("a cache differs from the storage and is recreated", "prefix", r.prefix, "revision", revision,
			"have", have.Count, "want", want.Count)
		c.drop(r.prefix, "it differed from the storage")
	}
	return nil
}

// sweep drops the encodings that nobody asked for in the last sweeps, and the changes that are too old by now. It walks
// the items without the lock, as there may be very many. The window has no copy to walk, so its changes are walked with
// the lock held.
func (r *resource) sweep(now time.Time) {
	s, _, err := r.snapshot(0)
	if err != nil {
		return
	}
	for item := range s.from(r.prefix, r.prefix) {
		item.Sweep()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.window.trim(now)
	for n := r.window.first; n < r.window.end; n++ {
		if prev := r.window.at(n).prev; prev != nil {
			prev.Sweep()
		}
	}
}
