package watchcache

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/btree"

	"bonsai/pkg/apiserver/storage"
)

// errDropped: the resource's cache was dropped while it was used. Readers start over; watches end with ErrExpired.
var errDropped = errors.New("watchcache: the cache was dropped")

const (
	treeDegree = 32
	// A burst of changes wakes the watchers at most once per watcherCost for each of them, and at least every wakeMost:
	// one waking then carries several changes. A change after a pause wakes them at once.
	watcherCost = 25 * time.Microsecond
	wakeMost    = 10 * time.Millisecond
)

// entry is an item in the tree, with its key at hand for comparisons.
type entry struct {
	key  string
	item *storage.Item
}

func less(a, b entry) bool { return a.key < b.key }

// resource is the cache of one resource.
type resource struct {
	prefix string
	facts  storage.FactsFunc
	log    *slog.Logger

	ready  chan struct{} // closed when loaded, or when loading failed
	failed error         // set before ready is closed
	base   int64         // the revision it was loaded at; set before ready is closed

	// mu guards what follows, up to waking. Only the hub's goroutine changes the tree and the window, many readers
	// look. It is taken inside Cache.mu (by drop) and outside writes.mu (by change), and nothing waits for the network
	// under it.
	mu      sync.RWMutex
	loading bool
	early   []storage.Event // changes that came while loading (the list may be older than they are), or that wait
	settled chan struct{}   // closed and replaced when changes that waited are in the tree
	dead    string          // why the cache was dropped; "" while it lives
	tree    *btree.BTreeG[entry]
	last    int64     // revision of the newest change in tree
	present *snapshot // of tree as it is; nil when tree has changed since
	kept    []*snapshot
	window  window

	wake     chan struct{} // closed and replaced when watchers must look
	woken    time.Time     // when that was last done
	waking   bool          // a timer will do it
	watchers atomic.Int64

	writes writes

	// behind is the revision up to which all changes are in the tree while later ones wait to be opened; 0: none wait.
	// It changes under mu.
	behind atomic.Int64
}

func newResource(prefix string, cfg Config) *resource {
	_, facts := cfg.Facts.Resource(prefix)
	return &resource{prefix: prefix, facts: facts, log: cfg.Log, loading: true, ready: make(chan struct{}),
		wake: make(chan struct{}), settled: make(chan struct{}),
		tree: btree.NewG(treeDegree, less), window: window{maxBytes: cfg.WindowBytes}}
}

// loaded fills the cache with a list and the changes since. It runs once, on the goroutine of Cache.load. The hub may
// have delivered changes that the list already has; base sorts them out (applyLocked). It reports whether changes wait
// to be opened.
func (r *resource) loaded(l *storage.List) (waiting bool) {
	r.mu.Lock()
	for _, item := range l.Items {
		r.tree.ReplaceOrInsert(entry{item.Key, item})
	}
	r.base, r.last, r.window.floor = l.Revision, l.Revision, l.Revision
	r.present = nil // a sweep may have looked already
	early := r.early
	r.loading, r.early = false, nil
	if waiting = r.waits(early); waiting {
		r.waitLocked(early)
	} else {
		r.applyLocked(early, time.Now())
	}
	r.mu.Unlock()
	close(r.ready) // last: those who wait for it read base without the lock
	return waiting
}

// kill ends the cache's life: its watches expire. It wakes all watchers, which find dead under the lock. Readers that
// have a snapshot finish with it. Nothing brings a dead resource back: the next user loads another one.
func (r *resource) kill(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead, r.early = why, nil
	close(r.settled)
	r.settled = make(chan struct{})
	r.wakeLocked(time.Time{})
}

// apply takes in changes, in order, on the hub's goroutine. A dead resource ignores them: the hub may have found it in
// the map just before it was dropped. waiting is how many changes wait to be opened, and waiter reports that nobody
// opens them yet.
func (r *resource) apply(events []storage.Event, now time.Time) (waiting int, waiter bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.dead != "":
	case r.loading:
		r.early = append(r.early, events...)
	case r.waits(events):
		waiter = r.waitLocked(events)
		waiting = len(r.early)
	default:
		r.applyLocked(events, now)
		r.wakeLocked(now)
	}
	return waiting, waiter
}

// applyLocked puts changes into tree and window. r.mu is held for writing. The tree changes in place, but copies what a
// snapshot still shares; present is forgotten, so that the next reader makes another snapshot.
func (r *resource) applyLocked(events []storage.Event, now time.Time) {
	for _, ev := range events {
		if ev.Type == storage.Bookmark || ev.Item.Revision <= r.base { // the list that it was loaded from has it
			continue
		}
		if ch := r.change(ev); ch != nil {
			ch.at = now
			r.window.push(ch)
			r.last, r.present = ch.revision, nil
		}
	}
}

// change puts one event into the tree. It returns nil for a deletion of what the tree does not have: nobody has seen
// that object. r.mu is held for writing.
func (r *resource) change(ev storage.Event) *change {
	if ev.Type == storage.Deleted {
		old, ok := r.tree.Delete(entry{key: ev.Item.Key})
		if !ok {
			return nil
		}
		r.writes.passed(ev.Item)
		return &change{revision: ev.Item.Revision, prev: old.item}
	}
	item := r.writes.claim(ev.Item)
	if item == nil {
		item = r.decode(ev.Item)
	}
	old, _ := r.tree.ReplaceOrInsert(entry{item.Key, item})
	return &change{revision: item.Revision, cur: item, prev: old.item}
}

// decode reads the facts of an item that others wrote. One that cannot be read is kept, without facts, so that it does
// not take the others down; its readers get the error, by readable.
func (r *resource) decode(item *storage.Item) *storage.Item {
	if r.facts == nil || item.Facts.Known() || item.Sealed() {
		return item
	}
	facts, err := r.facts(item.Value())
	if err != nil {
		err = storage.Unreadable(item.Key, item.Value(), item.Revision, err)
		r.log.Error("an object in the storage cannot be read", "key", item.Key, "revision", item.Revision, "err", err)
		return item
	}
	return storage.NewItem(item.Key, item.Value(), item.Revision, facts)
}

// readable is the error of an item that decode could not read. Without facts no selector chooses it: who lists would
// take it for gone.
func (r *resource) readable(item *storage.Item) error {
	if item.Sealed() {
		return storage.At(fmt.Sprintf("watchcache: read revision %d of", item.Revision), item.Key, storage.ErrSealed)
	}
	if r.facts == nil || item.Facts.Known() {
		return nil
	}
	if _, err := r.facts(item.Value()); err != nil {
		return storage.At(fmt.Sprintf("watchcache: read revision %d of", item.Revision), item.Key,
			storage.Unreadable(item.Key, item.Value(), item.Revision, err))
	}
	return nil
}

// shows is the error of a change that no watcher can see, because its object cannot be read, before or after.
func (r *resource) shows(ch *change) error {
	for _, item := range []*storage.Item{ch.prev, ch.cur} {
		if item != nil {
			if err := r.readable(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// wakeLocked tells the watchers to look, now or, in a burst, a little later. Closing one channel wakes all of them
// without a list. A dead resource wakes at once. r.mu is held for writing.
func (r *resource) wakeLocked(now time.Time) {
	gap := min(time.Duration(r.watchers.Load())*watcherCost, wakeMost)
	if since := now.Sub(r.woken); r.dead == "" && since < gap {
		if !r.waking {
			r.waking = true
			time.AfterFunc(gap-since, r.wakeLate)
		}
		return
	}
	r.woken = now
	close(r.wake)
	r.wake = make(chan struct{})
}

// wakeLate is the timer's part of wakeLocked, on a goroutine of its own.
func (r *resource) wakeLate() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waking, r.woken = false, time.Now()
	close(r.wake)
	r.wake = make(chan struct{})
}

// get returns the item under key, nil if there is none.
func (r *resource) get(key string) (*storage.Item, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.dead != "" {
		return nil, errDropped
	}
	e, _ := r.tree.Get(entry{key: key})
	return e.item, nil
}

// writes are the drafts that this server is writing: what comes back from the hub with the same bytes takes the
// writer's item, or the writer takes the hub's, whichever is first. One draft per key; a second writer of a key goes
// without.
type writes struct {
	// mu is not the resource's: a writer that announces a draft does not wait for readers of the tree.
	mu    sync.Mutex
	byKey map[string]*write
}

type write struct {
	draft storage.Draft
	item  *storage.Item // made by the one that was first
}

// begin announces a draft with its facts. It returns nil if another one is announced for the key.
func (w *writes) begin(key string, d storage.Draft) *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[key] != nil {
		return nil
	}
	if w.byKey == nil {
		w.byKey = map[string]*write{}
	}
	one := &write{draft: d}
	w.byKey[key] = one
	return one
}

// cancel takes back what begin announced.
func (w *writes) cancel(key string, one *write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one != nil && w.byKey[key] == one {
		delete(w.byKey, key)
	}
}

// end says that item was written, and returns the one that all must share. reached is how far the hub is: an event that
// has passed without claiming will not come again.
func (w *writes) end(one *write, item *storage.Item, reached int64) *storage.Item {
	if one == nil {
		return item
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey[item.Key] != one {
		return item
	}
	if one.item != nil || reached >= item.Revision {
		delete(w.byKey, item.Key)
	}
	if one.item != nil && one.item.Revision == item.Revision {
		return one.item
	}
	one.item = item
	return item
}

// claim returns the item that the writer of this change made or will take, nil if this server did not write it.
func (w *writes) claim(ev *storage.Item) *storage.Item {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.byKey[ev.Key]
	if one == nil {
		return nil
	}
	if one.item != nil { // the writer was first
		if one.item.Revision <= ev.Revision {
			delete(w.byKey, ev.Key)
		}
		if one.item.Revision == ev.Revision {
			return one.item
		}
		return nil
	}
	if !bytes.Equal(one.draft.Value, ev.Value()) {
		return nil
	}
	one.item = storage.NewItem(ev.Key, one.draft.Value, ev.Revision, *one.draft.Facts)
	return one.item
}

// passed forgets a finished write that is older than the change ev.
func (w *writes) passed(ev *storage.Item) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.byKey[ev.Key]; one != nil && one.item != nil && one.item.Revision <= ev.Revision {
		delete(w.byKey, ev.Key)
	}
}

// dropped is what a watch of a dropped cache ends with.
func (r *resource) dropped() error {
	return fmt.Errorf("watchcache: watch %s: %s: %w", r.prefix, r.dead, storage.ErrExpired)
}
