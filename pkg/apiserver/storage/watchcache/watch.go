package watchcache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"bonsai/pkg/apiserver/storage"
)

const (
	// batch is how many changes Next looks at in one go. The resource is locked for reading meanwhile, and the hub
	// waits for that.
	batch = 500
	// bookmarkEvery is how often a quiet watcher gets a bookmark with its revision.
	bookmarkEvery = time.Minute
	// restEvents is the room for events and changes that a quiet watcher keeps: enough that one for which something
	// changes now and then does not make it again each time.
	restEvents = 8
)

var errStopped = errors.New("watchcache: watch stopped")

// watcher is a cursor into a resource's window. Its fields belong to the one goroutine that calls Next; Stop, which
// others may call, touches only once and done.
type watcher struct {
	c      *Cache
	r      *resource
	prefix string
	opts   storage.WatchOptions

	initial *snapshot // being given; nil when done
	start   string    // its next key
	upTo    int64     // its revision

	next     uint64 // number of the next change to look at
	after    int64  // changes up to this revision are not for this watcher
	told     int64  // revision of the last event given
	changes  []*change
	events   []storage.Event
	bookmark *time.Timer // nil without bookmarks

	once sync.Once
	done chan struct{}
}

// Watch implements storage.Interface. A raw watch, and one of keys that are not cached, goes to the backend. A watch
// from a revision needs no wait: the window or the backend has the changes. One that begins with items first waits
// until the cache is new enough, unless AtHand takes whatever there is.
func (c *Cache) Watch(ctx context.Context, prefix string, opts storage.WatchOptions) (w storage.Watch, err error) {
	err = c.retry(ctx, prefix, func(r *resource) error {
		if r == nil || opts.Raw {
			w, err = c.backend.Watch(ctx, prefix, opts)
			return err
		}
		if opts.Revision != 0 && !opts.Initial {
			w, err = c.watchFrom(ctx, r, prefix, opts)
			return err
		}
		switch {
		case opts.Revision != 0:
			err = c.reach(ctx, r, opts.Revision)
		case !opts.AtHand:
			err = c.fresh(ctx, r)
		}
		if err != nil {
			return err
		}
		w, err = c.watchAll(r, prefix, opts)
		return err
	})
	return w, err
}

// newWatcher counts the watcher at its resource until Stop: the count decides how often a burst of changes wakes them
// (wakeLocked). r.mu is held, at least for reading.
func (c *Cache) newWatcher(r *resource, prefix string, opts storage.WatchOptions) *watcher {
	w := &watcher{c: c, r: r, prefix: prefix, opts: opts, done: make(chan struct{})}
	if opts.Bookmarks {
		w.bookmark = time.NewTimer(bookmarkEvery)
	}
	r.watchers.Add(1)
	return w
}

// watchAll returns a watcher that begins with all items of the present. It takes the snapshot and the position in the
// window under one lock, so that each change is in exactly one of them.
func (c *Cache) watchAll(r *resource, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	reached := max(c.reached(r), r.base)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != "" {
		return nil, errDropped
	}
	w := c.newWatcher(r, prefix, opts)
	w.initial, w.start = r.snapshotLocked(), prefix
	w.upTo = max(reached, r.last)
	w.next, w.after, w.told = r.window.end, w.upTo, w.upTo
	return w, nil
}

// watchFrom returns a watcher of the changes after a revision. Changes older than the window come from the backend,
// which has them until it compacts.
func (c *Cache) watchFrom(ctx context.Context, r *resource, prefix string, opts storage.WatchOptions) (storage.Watch,
	error) {
	w, err := c.resume(r, prefix, opts)
	if w != nil || err != nil {
		return w, err
	}
	return c.catchUp(ctx, r, prefix, opts)
}

// resume returns a watcher from opts.Revision on; nil if the window does not go back so far. It takes position and
// check under one lock, so the window cannot drop the position in between.
func (c *Cache) resume(r *resource, prefix string, opts storage.WatchOptions) (storage.Watch, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.dead != "" {
		return nil, errDropped
	}
	n, ok := r.window.after(opts.Revision)
	if !ok {
		return nil, nil
	}
	w := c.newWatcher(r, prefix, opts)
	w.next, w.after, w.told = n, opts.Revision, opts.Revision
	return w, nil
}

// Next implements storage.Watch. A bookmark carries the hub's revision from before the look into the window: if that
// found nothing, the watcher has missed no change up to it. A newer revision could cover a change that it has not seen,
// and a client that resumes there would lose it.
func (w *watcher) Next(ctx context.Context) ([]storage.Event, error) {
	if w.initial != nil {
		return w.nextInitial(ctx)
	}
	var ring <-chan time.Time
	if w.bookmark != nil {
		ring = w.bookmark.C
	}
	for due := false; ; {
		reached := w.c.reached(w.r) // before looking: all up to it can be seen
		more, wake, err := w.look(ctx)
		if err != nil || len(w.events) > 0 {
			return w.events, err
		}
		if more {
			continue
		}
		if due && reached > w.told && reached >= w.after {
			w.told = reached
			return append(w.events, storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: reached}}), nil
		}
		due = false
		w.rest()
		select {
		case <-wake:
		case <-ring:
			due = true
			w.bookmark.Reset(bookmarkEvery)
		case <-ctx.Done():
			return nil, storage.At("watchcache: watch", w.prefix, ctx.Err())
		case <-w.done:
			return nil, errStopped
		}
	}
}

// look reads changes from the window and keeps in w.events those the watcher sees. more says that it should look again,
// else wake is closed when it should. wake is read under the same lock as the window: a change in between would close
// the old channel, and the watcher would wait on the new one. Filters run without the lock, as they may be slow.
func (w *watcher) look(ctx context.Context) (more bool, wake <-chan struct{}, err error) {
	r := w.r
	r.mu.RLock()
	dead, ok := r.dead != "", false
	if !dead {
		w.changes, ok = r.window.read(w.changes[:0], w.next, batch)
	}
	wake = r.wake
	r.mu.RUnlock()
	switch {
	case dead && w.c.ctx.Err() != nil:
		return false, nil, errStopped // not the reader's loss: it can go on at another server
	case dead:
		return false, nil, r.dropped()
	case !ok:
		return false, nil, fmt.Errorf("watchcache: watch %s: its reader is too slow, at revision %d: %w", w.prefix,
			w.told, storage.ErrExpired)
	}
	w.events = w.events[:0]
	if key := sealedKey(w.changes); key != "" {
		return false, nil, watchSealed(ctx, w.c, r, key)
	}
	for _, ch := range w.changes {
		if ch.revision <= w.after || !strings.HasPrefix(ch.key(), w.prefix) {
			continue
		}
		if err := r.shows(ch); err != nil {
			return false, nil, err
		}
		if ev := ch.event(w.opts.Filter); ev.Type != "" {
			w.events = append(w.events, ev)
			w.told = ch.revision
		}
	}
	w.next += uint64(len(w.changes))
	clear(w.changes) // lets go of what the window drops
	return len(w.changes) == batch, wake, nil
}

// rest lets go of what the last events needed, also of their items, which may have been superseded: there may be none
// for hours.
func (w *watcher) rest() {
	if cap(w.events) > restEvents {
		w.events = nil
	}
	if cap(w.changes) > restEvents {
		w.changes = nil
	}
	clear(w.events[:cap(w.events)])
}

// nextInitial gives the items of the snapshot, and in the end the bookmark if it was asked for. It gives batch items at
// a time, and needs no lock: the snapshot does not change. The watcher keeps the snapshot until then, and with it items
// that have been superseded meanwhile.
func (w *watcher) nextInitial(ctx context.Context) ([]storage.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, storage.At("watchcache: watch", w.prefix, err)
	}
	w.events = w.events[:0]
	full := false
	for item := range w.initial.from(w.start, w.prefix) {
		if full = len(w.events) == batch; full {
			w.start = item.Key
			break
		}
		if item.Sealed() {
			return nil, watchSealed(ctx, w.c, w.r, item.Key)
		}
		if err := w.r.readable(item); err != nil {
			return nil, err
		}
		if w.opts.Filter == nil || w.opts.Filter(item) {
			w.events = append(w.events, storage.Event{Type: storage.Added, Item: item, Initial: true})
		}
	}
	if full {
		return w.events, nil
	}
	w.initial = nil
	if w.opts.Initial {
		w.events = append(w.events,
			storage.Event{Type: storage.Bookmark, Item: &storage.Item{Revision: w.upTo}, InitialEnd: true})
	}
	if len(w.events) == 0 {
		return w.Next(ctx)
	}
	return w.events, nil
}

// Stop implements storage.Watch. It may come from any goroutine while Next waits, which then returns errStopped.
func (w *watcher) Stop() {
	w.once.Do(func() {
		close(w.done)
		w.r.watchers.Add(-1)
		if w.bookmark != nil {
			w.bookmark.Stop()
		}
	})
}
