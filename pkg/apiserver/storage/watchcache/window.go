package watchcache

import (
	"sort"
	"sync/atomic"
	"time"

	"bonsai/pkg/apiserver/storage"
)

const (
	// windowEvents changes are kept however old they are, and more as long as they are younger than windowAge; but
	// never more than the window's bytes allow. The first serves watchers of a quiet resource, the second those that
	// are away for a restart while a busy one changes, and the bytes protect the server from both.
	windowEvents = 1000
	windowAge    = time.Minute
	// recentChanges is how many changes back watchers usually are at most: the encodings of what was superseded before
	// that are dropped, and of what was set then those that only watchers want. They are made again for a watcher that
	// is farther back.
	recentChanges = 512
	// changeBytes is what a change costs besides the value it superseded.
	changeBytes = 160
)

// change is one entry of the window: prev is nil for a creation, cur for a deletion.
type change struct {
	revision  int64
	at        time.Time
	prev, cur *storage.Item

	gone atomic.Pointer[storage.Item] // prev at revision, made when first needed
}

// event is the change as a watcher with filter sees it; its Type is "" if it does not.
func (c *change) event(filter func(*storage.Item) bool) storage.Event {
	t := storage.Seen(filter, c.prev, c.cur)
	if t != storage.Deleted {
		return storage.Event{Type: t, Item: c.cur}
	}
	if c.gone.Load() == nil {
		c.gone.CompareAndSwap(nil, c.prev.At(c.revision))
	}
	return storage.Event{Type: t, Item: c.gone.Load()}
}

// key is the key the change is about.
func (c *change) key() string {
	if c.cur != nil {
		return c.cur.Key
	}
	return c.prev.Key
}

// bytes is the memory that only the window keeps alive: the superseded value.
func (c *change) bytes() int {
	if c.prev == nil {
		return changeBytes
	}
	return changeBytes + c.prev.Held()
}

// window is a ring of the latest changes, numbered from 0 in the order they came.
type window struct {
	ring     []*change
	first    uint64 // number of the oldest change kept
	end      uint64 // number the next change gets
	floor    int64  // all changes after this revision are kept
	size     int    // bytes
	maxBytes int
}

func (w *window) at(n uint64) *change { return w.ring[n%uint64(len(w.ring))] }

// trim drops the oldest changes as far as the bounds require. floor moves with them: a watcher that asks for changes
// from before it expires, and lists again.
func (w *window) trim(now time.Time) {
	for w.end > w.first && w.over(now) {
		oldest := w.at(w.first)
		w.floor = oldest.revision
		w.size -= oldest.bytes()
		w.ring[w.first%uint64(len(w.ring))] = nil
		w.first++
	}
}

func (w *window) push(c *change) {
	w.trim(c.at)
	if int(w.end-w.first) == len(w.ring) {
		w.grow()
	}
	w.ring[w.end%uint64(len(w.ring))] = c
	w.end++
	w.size += c.bytes()
	if w.end-w.first > recentChanges {
		old := w.at(w.end - recentChanges - 1)
		if old.prev != nil {
			old.prev.DropEncodings()
		}
		if old.cur != nil {
			old.cur.DropRecent()
		}
		if gone := old.gone.Load(); gone != nil {
			gone.DropEncodings()
		}
	}
}

// over reports whether the oldest change must go.
func (w *window) over(now time.Time) bool {
	if w.size > w.maxBytes {
		return true
	}
	return w.end-w.first >= windowEvents && now.Sub(w.at(w.first).at) > windowAge
}

// grow doubles the ring. It never shrinks: what bounds it is the number of changes that the bytes and the age allow.
func (w *window) grow() {
	bigger := make([]*change, max(64, 2*len(w.ring)))
	for n := w.first; n < w.end; n++ {
		bigger[n%uint64(len(bigger))] = w.at(n)
	}
	w.ring = bigger
}

// after returns the number of the first change after revision; ok is false if some of those changes are not kept any
// more.
func (w *window) after(revision int64) (n uint64, ok bool) {
	if revision < w.floor {
		return 0, false
	}
	i := sort.Search(int(w.end-w.first), func(i int) bool { return w.at(w.first+uint64(i)).revision > revision })
	return w.first + uint64(i), true
}

// read appends at most limit changes from number n on to buf; ok is false if n is not kept any more.
func (w *window) read(buf []*change, n uint64, limit int) (_ []*change, ok bool) {
	if n < w.first {
		return buf, false
	}
	for ; n < w.end && limit > 0; n, limit = n+1, limit-1 {
		buf = append(buf, w.at(n))
	}
	return buf, true
}
