package watchcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bonsai/pkg/apiserver/storage"
)

// A value that only another process can open (KMS) comes sealed from the hub's watch, which must not wait: it brings
// the changes of all resources. The changes of that resource then wait in resource.early until they are opened, in
// order, by a goroutine of their own. Meanwhile the resource is behind the hub, and its consistent reads wait, or go to
// the backend.
//
// What cannot be opened stays sealed in the tree, so that it does not take the others down. Reads that meet it go to
// the backend, which tries again: it returns the error, or has a value, and then the cache is loaded again.

// maxWaiting bounds the changes of one resource that wait to be opened. Beyond them the cache is dropped, and loads
// again.
const maxWaiting = 10_000

// waits reports whether events must wait: behind others that wait, or because one of them is sealed. r.mu is held for
// writing.
func (r *resource) waits(events []storage.Event) bool {
	return r.behind.Load() != 0 ||
		slices.ContainsFunc(events, func(ev storage.Event) bool { return ev.Item.Sealed() })
}

// waitLocked adds events to those that wait, and reports whether somebody must call Cache.settle. r.mu is held for
// writing.
func (r *resource) waitLocked(events []storage.Event) (first bool) {
	r.early = append(r.early, events...)
	first = r.behind.Load() == 0
	if first {
		r.behind.Store(events[0].Item.Revision - 1)
	}
	return first
}

// settle opens the changes of r that wait, applies them, and ends when none wait any more.
func (c *Cache) settle(r *resource) {
	for {
		r.mu.Lock()
		batch := r.early
		r.early = nil
		if len(batch) == 0 || r.dead != "" {
			r.behind.Store(0)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		for i := range batch {
			batch[i].Item = opened(c, batch[i].Item)
		}
		r.mu.Lock()
		now := time.Now()
		r.applyLocked(batch, now)
		r.behind.Store(batch[len(batch)-1].Item.Revision)
		if len(r.early) == 0 {
			r.behind.Store(0)
		}
		settled := r.behind.Load() == 0
		r.wakeLocked(now)
		close(r.settled)
		r.settled = make(chan struct{})
		r.mu.Unlock()
		if settled {
			return
		}
	}
}

// opened returns item opened if the backend can.
func opened(c *Cache, item *storage.Item) *storage.Item {
	if !item.Sealed() || c.cfg.Open == nil {
		return item
	}
	opened, err := c.cfg.Open(c.ctx, item)
	if err != nil {
		c.cfg.Log.Error("a change of an object in the storage cannot be opened", "key", item.Key, "revision",
			item.Revision, "err", err)
		return item
	}
	return opened
}

// reached is up to which revision r has all changes: the hub's, unless changes of r wait to be opened. It reads the
// hub's revision first: what was put to wait after that is newer.
func (c *Cache) reached(r *resource) int64 {
	reached := c.hub.revision.Load()
	if behind := r.behind.Load(); behind != 0 {
		reached = min(reached, behind)
	}
	return reached
}

// caughtUp waits until no change of r up to revision waits to be opened. FutureError after storage.FutureWait.
func (c *Cache) caughtUp(ctx context.Context, r *resource, revision int64) error {
	if r.behind.Load() == 0 {
		return nil
	}
	deadline := time.NewTimer(storage.FutureWait)
	defer deadline.Stop()
	for {
		r.mu.RLock()
		behind, settled := r.behind.Load(), r.settled
		r.mu.RUnlock()
		if behind == 0 || behind >= revision {
			return nil
		}
		select {
		case <-settled:
		case <-deadline.C:
			return &storage.FutureError{Asked: revision, Current: behind}
		case <-ctx.Done():
			return fmt.Errorf("watchcache: wait for revision %d: %w", revision, ctx.Err())
		}
	}
}

// sealedKey is the key of a change with an item that could not be opened; "" if there is none.
func sealedKey(changes []*change) string {
	for _, ch := range changes {
		if ch.prev != nil && ch.prev.Sealed() || ch.cur != nil && ch.cur.Sealed() {
			return ch.key()
		}
	}
	return ""
}

// getSealed reads key from the backend, because the item in the tree is sealed.
func getSealed(ctx context.Context, c *Cache, r *resource, key string) (*storage.Item, error) {
	item, err := c.backend.Get(ctx, key, 0)
	if err == nil || errors.Is(err, storage.ErrNotFound) {
		reopen(c, r)
	}
	return item, err
}

// listSealed lists prefix at the backend, because the tree has sealed items.
func listSealed(ctx context.Context, c *Cache, r *resource, prefix string,
	opts storage.ListOptions) (*storage.List, error) {
	l, err := c.backend.List(ctx, prefix, opts)
	if err == nil {
		reopen(c, r)
	}
	return l, err
}

// watchSealed is the error of a watch that meets the sealed item under key: why it cannot be opened, or that the watch
// must begin again, now that it can.
func watchSealed(ctx context.Context, c *Cache, r *resource, key string) error {
	if _, err := getSealed(ctx, c, r, key); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return r.dropped()
}

// reopen drops the cache of r, as what was sealed in it can be opened now.
func reopen(c *Cache, r *resource) {
	if (*c.resources.Load())[r.prefix] == r { // somebody may have been faster
		c.drop(r.prefix, "its objects can be opened again")
	}
}
