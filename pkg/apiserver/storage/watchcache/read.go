package watchcache

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/google/btree"

	"bonsai/pkg/apiserver/storage"
)

const (
	// keepSnapshots is how many past snapshots a resource keeps for the pages of its lists, and keepFor how long: as
	// long as etcd keeps them between compactions, and not more of them, as each holds what has changed since.
	keepSnapshots = 8
	keepFor       = 5 * time.Minute
)

// snapshot is the items of a resource at one revision: a clone of the tree that is never written to, so that readers
// walk it without the resource's lock. Cloning takes constant time, but each later write to the original copies the
// nodes on its path that the two still share. So the reads between two changes share one snapshot (resource.present).
type snapshot struct {
	tree     *btree.BTreeG[entry]
	revision int64 // of the newest change in it
	until    time.Time

	once sync.Once
	list []*storage.Item
	err  error // of an item that is not readable
}

// all returns all items, or the error of one that is not readable; every caller gets the same slice.
func (s *snapshot) all(readable func(*storage.Item) error) ([]*storage.Item, error) {
	s.once.Do(func() {
		list := make([]*storage.Item, 0, s.tree.Len())
		var corrupted storage.Corrupted
		s.tree.Ascend(func(e entry) bool {
			list = append(list, e.item)
			s.err = readable(e.item)
			return s.err == nil || corrupted.Add(s.err)
		})
		s.err = corrupted.Err(s.err)
		if s.err == nil {
			s.list = list
		}
	})
	return s.list, s.err
}

// from gives the items under prefix in order, beginning with the key start.
func (s *snapshot) from(start, prefix string) iter.Seq[*storage.Item] {
	return func(yield func(*storage.Item) bool) {
		s.tree.AscendGreaterOrEqual(entry{key: start}, func(e entry) bool {
			return strings.HasPrefix(e.key, prefix) && yield(e.item)
		})
	}
}

// snapshot returns the present state and its exact revision. reached is the hub's revision from before the call: the
// hub publishes a revision after every cache has its changes, so the state has all changes up to reached even if the
// resource's own newest one is older. A reached that was read afterwards could promise a change that the state lacks.
func (r *resource) snapshot(reached int64) (*snapshot, int64, error) {
	r.mu.RLock()
	s, dead := r.present, r.dead
	r.mu.RUnlock()
	if s == nil && dead == "" {
		r.mu.Lock()
		s, dead = r.snapshotLocked(), r.dead
		r.mu.Unlock()
	}
	if dead != "" {
		return nil, 0, errDropped
	}
	return s, max(reached, s.revision), nil
}

// Count is how many objects there are under the prefix of a resource; false while that is unknown, because it is not
// cached yet.
func (c *Cache) Count(prefix string) (int, bool) {
	r := c.cached(prefix)
	if r == nil {
		return 0, false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.tree.Len(), !r.loading && r.dead == ""
}

// snapshotLocked returns the snapshot of the present state. r.mu is held for writing, not for reading: two clones of
// a tree at the same time would corrupt it.
func (r *resource) snapshotLocked() *snapshot {
	if r.present == nil {
		r.present = &snapshot{tree: r.tree.Clone(), revision: r.last}
	}
	return r.present
}

// at returns the state as of a past revision: the present one if nothing has changed since, one that was kept, or the
// present one with the later changes undone. nil if the window does not go back so far.
//
// Kept states are found by past too: lists at two revisions with no change of this resource in between see the same
// state. Undoing takes time by the number of later changes, with the lock held. So the result is kept for the next
// page.
func (r *resource) at(revision int64) (*snapshot, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != "" {
		return nil, errDropped
	}
	if r.last <= revision {
		return r.snapshotLocked(), nil
	}
	n, ok := r.window.after(revision)
	past := int64(-1) // revision of the newest change up to the asked one, if known
	if ok {
		past = r.window.floor
		if n > r.window.first {
			past = r.window.at(n - 1).revision
		}
	}
	for _, s := range r.kept {
		if s.revision == revision || s.revision == past {
			return s, nil
		}
	}
	if !ok {
		return nil, nil
	}
	s := &snapshot{tree: r.snapshotLocked().tree.Clone(), revision: past}
	for i := r.window.end; i > n; i-- { // newest first: prev is an item just before its change
		ch := r.window.at(i - 1)
		if ch.prev != nil {
			s.tree.ReplaceOrInsert(entry{ch.prev.Key, ch.prev})
		} else {
			s.tree.Delete(entry{key: ch.cur.Key})
		}
	}
	r.retainLocked(s, time.Now())
	return s, nil
}

// retain holds s for the pages to come of a list at s.
func (r *resource) retain(s *snapshot, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.retainLocked(s, now)
}

// retainLocked adds s as the youngest kept state. It drops those whose time is over, and the oldest beyond
// keepSnapshots: later pages at that one come from the window or from the backend.
func (r *resource) retainLocked(s *snapshot, now time.Time) {
	s.until = now.Add(keepFor)
	kept := r.kept[:0:0]
	for _, old := range r.kept {
		if old != s && now.Before(old.until) {
			kept = append(kept, old)
		}
	}
	if len(kept) == keepSnapshots {
		kept = kept[1:]
	}
	r.kept = append(kept, s)
}

// Get implements storage.Interface. With a notOlderThan, any state from that revision on answers, and the storage is
// not asked. Without one, the answer must be the newest: the hub has to reach the storage's revision first.
func (c *Cache) Get(ctx context.Context, key string, notOlderThan int64) (item *storage.Item, err error) {
	err = c.retry(ctx, key, func(r *resource) error {
		if r == nil {
			item, err = c.backend.Get(ctx, key, notOlderThan)
			return err
		}
		if notOlderThan > 0 {
			err = c.reach(ctx, r, notOlderThan)
		} else if err = c.fresh(ctx, r); errors.Is(err, storage.ErrFuture) {
			item, err = c.backend.Get(ctx, key, 0) // the hub is stuck, the storage is not
			return err
		}
		if err != nil {
			return err
		}
		// From the tree, not a snapshot: a snapshot for one item would make the next write copy nodes.
		if item, err = r.get(key); item == nil || err != nil {
			return err
		}
		if item.Sealed() {
			item, err = getSealed(ctx, c, r, key)
			return err
		}
		return r.readable(item)
	})
	if err == nil && item == nil {
		err = fmt.Errorf("get %s: %w", key, storage.ErrNotFound)
	}
	return item, err
}

// List implements storage.Interface. The backend answers for keys that are not cached, for states that the window does
// not reach, and while the hub is stuck. It gets the options as they came, and resolves the token itself.
func (c *Cache) List(ctx context.Context, prefix string, opts storage.ListOptions) (l *storage.List, err error) {
	start, resolved, err := opts.From(prefix)
	if err != nil {
		return nil, err
	}
	err = c.retry(ctx, prefix, func(r *resource) error {
		if r != nil {
			l, err = c.list(ctx, r, start, prefix, resolved)
			if errors.Is(err, storage.ErrSealed) {
				l, err = listSealed(ctx, c, r, prefix, opts)
			}
			if err != nil || l != nil {
				return err
			}
		}
		l, err = c.backend.List(ctx, prefix, opts)
		return err
	})
	return l, err
}

// list answers from r; nil if only the backend can. It first waits until r is new enough, then takes a snapshot, and
// makes the page of that without a lock: filters may be slow, and writes go on meanwhile.
func (c *Cache) list(ctx context.Context, r *resource, start, prefix string, opts storage.ListOptions) (*storage.List,
	error) {
	var err error
	if opts.Match == storage.Latest {
		if err = c.fresh(ctx, r); errors.Is(err, storage.ErrFuture) {
			return nil, nil // the hub is stuck, the storage is not
		}
	} else if opts.Revision > 0 {
		err = c.reach(ctx, r, opts.Revision)
	}
	if err != nil {
		return nil, err
	}
	var s *snapshot
	revision := opts.Revision
	if opts.Match == storage.Exact {
		// also where the cache goes back further: pages must expire some day
		if oldest := c.backend.Compacted(); revision < oldest {
			return nil, fmt.Errorf("list %s at revision %d, compacted to %d: %w", prefix, revision, oldest,
				storage.ErrExpired)
		}
		s, err = r.at(revision)
	} else {
		s, revision, err = r.snapshot(max(c.reached(r), r.base))
	}
	if err != nil || s == nil {
		return nil, err
	}
	// All lists of a whole resource share one slice: a thousand informers that start at once build it once.
	if prefix == r.prefix && start == prefix && opts.Filter == nil && opts.Limit == 0 {
		items, err := s.all(r.readable)
		if err != nil {
			return nil, err
		}
		return &storage.List{Items: items, Revision: revision}, nil
	}
	l, err := r.page(s, start, prefix, revision, opts)
	if err == nil && l.Continue != "" {
		r.retain(s, time.Now()) // the next pages must see the same state
	}
	return l, err
}

// page is storage.Page of s, or the error of an item that is not readable and that the page, or the search for it, came
// upon.
func (r *resource) page(s *snapshot, start, prefix string, revision int64, opts storage.ListOptions) (*storage.List,
	error) {
	var err error
	var corrupted storage.Corrupted
	// readable reports whether an item is, and notes those that are not.
	readable := func(item *storage.Item) bool {
		if err != nil {
			return false
		}
		unreadable := r.readable(item)
		if unreadable != nil && !corrupted.Add(unreadable) {
			err = unreadable
		}
		return unreadable == nil
	}
	// A filter passes over items without facts. So it must be known before the filter whether an item is readable: else
	// a list would silently lack it.
	if filter := opts.Filter; filter != nil {
		opts.Filter = func(item *storage.Item) bool {
			return readable(item) && filter(item)
		}
	}
	l := storage.Page(s.from(start, prefix), revision, opts)
	if opts.Filter == nil {
		for _, item := range l.Items {
			readable(item)
		}
	}
	if err = corrupted.Err(err); err != nil {
		return nil, err
	}
	return l, nil
}
