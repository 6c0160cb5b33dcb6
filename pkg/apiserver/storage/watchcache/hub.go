package watchcache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/storage"
)

const (
	// nudgeAfter is how long a reader waits for the hub before it asks for the progress: the revision may have moved by
	// a change outside of the root, which brings no event.
	nudgeAfter = 5 * time.Millisecond
	nudgeAgain = 100 * time.Millisecond
	// A lost watch is opened again after retryFirst, then later and later up to retryLast. Consistent reads wait
	// meanwhile, so it begins with as long as a restarted etcd takes to listen.
	retryFirst = 20 * time.Millisecond
	retryLast  = 2 * time.Second
)

// hub is how far the one watch of everything has come.
type hub struct {
	// All changes up to revision are in the caches. Every read asks for it, so it is read without mu, but it changes
	// under mu: wait would else miss a change between looking at it and joining the waiters.
	revision atomic.Int64

	mu      sync.Mutex // never held while the backend is asked
	waiters []waiter
	watch   storage.Watch // nil while there is none
	void    bool          // what is cached is not to be trusted

	// nudging tells that the progress is being asked for. A backend that does not take the question must not hold the
	// waiters, who have their own time.
	nudging atomic.Bool
}

type waiter struct {
	revision int64
	reached  chan struct{}
}

// wait returns when the hub has reached revision. FutureError after storage.FutureWait. Consistent reads call it, on
// their own goroutines.
func (h *hub) wait(ctx context.Context, revision int64) error {
	h.mu.Lock()
	if h.revision.Load() >= revision {
		h.mu.Unlock()
		return nil
	}
	w := waiter{revision, make(chan struct{})}
	h.waiters = append(h.waiters, w)
	h.mu.Unlock()
	deadline := time.NewTimer(storage.FutureWait)
	defer deadline.Stop()
	nudge := time.NewTimer(nudgeAfter)
	defer nudge.Stop()
	for {
		select {
		case <-w.reached:
			return nil
		case <-nudge.C:
			h.nudge(ctx)
			nudge.Reset(nudgeAgain)
		case <-deadline.C:
			h.leave(w)
			return &storage.FutureError{Asked: revision, Current: h.revision.Load()}
		case <-ctx.Done():
			h.leave(w)
			return fmt.Errorf("watchcache: wait for revision %d: %w", revision, ctx.Err())
		}
	}
}

// leave takes out a waiter that gave up, so that the list does not grow while the hub is stuck.
func (h *hub) leave(w waiter) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiters = slices.DeleteFunc(h.waiters, func(other waiter) bool { return other.reached == w.reached })
}

// nudge begins to ask for the progress, unless another one is asking just now, whose answer is as good. If the request
// fails, the watch does too and its reader sees why; if it is not taken, the end of the watch ends it.
func (h *hub) nudge(ctx context.Context) {
	h.mu.Lock()
	w := h.watch
	h.mu.Unlock()
	p, ok := w.(storage.Progresser)
	if !ok || !h.nudging.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer h.nudging.Store(false)
		_ = p.RequestProgress(ctx)
	}()
}

// advance sets the revision and wakes those who waited for it.
func (h *hub) advance(revision int64) {
	if revision <= h.revision.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set(revision)
}

// set puts the hub at revision and wakes those who waited for it. h.mu is held. Looking at each waiter is cheap enough:
// there are as many as reads under way.
func (h *hub) set(revision int64) {
	h.revision.Store(revision)
	h.waiters = slices.DeleteFunc(h.waiters, func(w waiter) bool {
		if w.revision > revision {
			return false
		}
		close(w.reached)
		return true
	})
}

// restart voids everything cached and starts over. Stopping the watch ends followOnce; follow then sees that the caches
// are void and renews them.
func (h *hub) restart() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.void = true
	if h.watch != nil {
		h.watch.Stop()
	}
}

// follow is the hub's loop. A watch that is lost is opened again where it ended, which closes the gap; when the backend
// has forgotten the changes since, the caches are dropped and their watches expire.
func (c *Cache) follow() {
	delay := retryFirst
	for c.ctx.Err() == nil {
		before := c.hub.revision.Load()
		err := c.followOnce()
		if c.ctx.Err() != nil {
			return
		}
		if c.hub.revision.Load() > before {
			delay = retryFirst
		}
		c.cfg.Log.Warn("the watch of the storage was lost, opening it again", "revision", c.hub.revision.Load(),
			"delay", delay, "err", err)
		select {
		case <-time.After(delay):
		case <-c.ctx.Done():
			return
		}
		delay = min(2*delay, retryLast)
		if errors.Is(err, storage.ErrExpired) || c.voided() {
			c.renew()
		}
	}
}

// followOnce opens the watch at the hub's revision and applies what it brings, until it fails. It runs on the goroutine
// of follow, the only one that applies changes. No client can hold it up: readers hold a resource's lock for one look
// only, and a slow one loses its place in the window.
func (c *Cache) followOnce() error {
	w, err := c.backend.Watch(c.ctx, c.cfg.Root, storage.WatchOptions{Revision: c.hub.revision.Load(), Raw: true})
	if err != nil {
		return err
	}
	defer w.Stop()
	c.hub.mu.Lock() // nudge and restart reach the watch from other goroutines
	c.hub.watch = w
	c.hub.mu.Unlock()
	for {
		events, err := w.Next(c.ctx)
		if err != nil {
			return err
		}
		c.apply(events, time.Now())
	}
}

// apply gives each resource its changes: neighbouring changes of one resource at once, which takes its lock once and
// wakes its watchers once. The revision is set when all of a batch are in, so a revision is never half there.
func (c *Cache) apply(events []storage.Event, now time.Time) {
	for first := 0; first < len(events); {
		r := c.cached(events[first].Item.Key)
		end := first + 1
		for end < len(events) && c.cached(events[end].Item.Key) == r {
			end++
		}
		if r != nil {
			c.give(r, events[first:end], now)
		}
		first = end
	}
	c.hub.advance(events[len(events)-1].Item.Revision) // last: a read that waited for it must find it in every cache
}

// give gives r changes of its own. It never waits for anybody.
func (c *Cache) give(r *resource, events []storage.Event, now time.Time) {
	waiting, waiter := r.apply(events, now)
	if waiter {
		c.tasks.Go(func() { c.settle(r) })
	}
	if waiting > maxWaiting {
		c.drop(r.prefix, "too many of its changes could not be opened")
	}
}

func (c *Cache) voided() bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return c.hub.void
}

// renew drops all caches and puts the hub at the backend's newest revision. Until that is known the hub is at 0, so
// that no consistent read is answered. Caches that were begun meanwhile are dropped again: they may lack changes from
// before the hub goes on; what is listed later has them.
func (c *Cache) renew() {
	const why = "changes of the storage were lost"
	was := c.hub.reset(0)
	c.drop("", why)
	for {
		revision, err := c.backend.Revision(c.ctx)
		if err == nil {
			c.cfg.Log.Error("changes of the storage were lost, all caches are rebuilt", "from", was, "to", revision)
			c.drop("", why)
			c.hub.reset(revision)
			return
		}
		select {
		case <-time.After(retryLast):
		case <-c.ctx.Done():
			return
		}
	}
}

// reset puts the hub at revision, which may be older, and returns where it was.
func (h *hub) reset(revision int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.revision.Load()
	h.void = false
	h.set(revision)
	return was
}
