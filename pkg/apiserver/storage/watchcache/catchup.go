package watchcache

import (
	"context"
	"sync"

	"bonsai/pkg/apiserver/storage"
)

// catchUp is a watch from before the window: it reads the backend's history until it has reached the window, and the
// window from then on. So neither a restart of this server nor a cache that is made late expires anyone's watch.
//
// Each catchUp is a watch of its own at the backend, which is why it ends as soon as it can. After a restart, each
// client that comes back may need one for a moment.
type catchUp struct {
	c      *Cache
	r      *resource
	prefix string
	opts   storage.WatchOptions
	told   int64

	mu      sync.Mutex // guards current against Stop
	stopped bool
	current storage.Watch
	arrived bool // current is a watcher of the window; used by Next only
}

func (c *Cache) catchUp(ctx context.Context, r *resource, prefix string, opts storage.WatchOptions) (storage.Watch,
	error) {
	// Bookmarks tell how far the history is, also if nothing of this prefix changes. The first is asked for at once: a
	// watch without changes would else stay at the backend for a minute. Clients without bookmarks do not get them.
	history := opts
	history.Bookmarks = true
	w, err := c.backend.Watch(ctx, prefix, history)
	if err != nil {
		return nil, err
	}
	if p, ok := w.(storage.Progresser); ok {
		if err := p.RequestProgress(ctx); err != nil {
			w.Stop()
			return nil, err
		}
	}
	return &catchUp{c: c, r: r, prefix: prefix, opts: opts, told: opts.Revision, current: w}, nil
}

// Next implements storage.Watch. Until the watch has arrived, it tries to cross after each batch. Before the batch is
// given, told covers it, so the window goes on right behind it.
func (w *catchUp) Next(ctx context.Context) ([]storage.Event, error) {
	for {
		events, err := w.current.Next(ctx)
		if err != nil || w.arrived {
			return events, err
		}
		w.told = max(w.told, events[len(events)-1].Item.Revision)
		if !w.opts.Bookmarks {
			kept := events[:0]
			for _, ev := range events {
				if ev.Type != storage.Bookmark {
					kept = append(kept, ev)
				}
			}
			events = kept
		}
		if err := w.cross(); err != nil {
			return nil, err
		}
		if len(events) > 0 {
			return events, nil
		}
	}
}

// cross changes over to the window if it goes back to where the watch is. It runs on Next's goroutine. Stop may come
// meanwhile from another: then the window's watcher is stopped here, as Stop has only seen the old one.
func (w *catchUp) cross() error {
	opts := w.opts
	opts.Revision = w.told
	window, err := w.c.resume(w.r, w.prefix, opts)
	if err != nil {
		return w.r.dropped()
	}
	if window == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.current.Stop()
	w.current, w.arrived = window, true
	if w.stopped {
		window.Stop()
	}
	return nil
}

// Stop implements storage.Watch.
func (w *catchUp) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.current.Stop()
}
