package owned

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// expectationsTTL is how long a controller waits for its own writes to come back before it takes it that the cache has
// seen them without an event: a child may come and go while a watch is broken.
const expectationsTTL = 5 * time.Minute

// Expectations remember, for each owner by its uid, which creations and deletions of its children were sent but are not
// yet in the cache. While some are outstanding the cache undercounts or overcounts, so the owner must not create or
// delete more.
type Expectations struct {
	now  func() time.Time
	seen func() string

	mu  sync.Mutex
	all map[types.UID]*expected // only those that are not satisfied
}

type expected struct {
	creations int
	deletions map[types.UID]struct{}
	since     time.Time
	// made is the resourceVersion of the newest child that was created, "" if there is none.
	made string
}

// NewExpectations returns an empty set; now is the clock. seen is the resourceVersion up to which the cache of the
// children shows all changes (controller.Informer.Seen).
func NewExpectations(now func() time.Time, seen func() string) *Expectations {
	return &Expectations{now: now, seen: seen, all: map[types.UID]*expected{}}
}

// Satisfied reports whether all writes for the owner have been seen. It is also true when the wait for them has grown
// too long, unless the cache is known to be older than one of them.
func (e *Expectations) Satisfied(owner types.UID) bool {
	seen := e.seen()
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.all[owner]
	return x == nil || x.met() || e.now().Sub(x.since) > expectationsTTL && !older(seen, x.made)
}

// older reports whether one version precedes another. Versions that cannot be compared count as caught up: a wait that
// nothing ends would stop the owner for good.
func older(version, than string) bool {
	cmp, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && cmp < 0
}

func (x *expected) met() bool { return x.creations <= 0 && len(x.deletions) == 0 }

// Expect sets what the owner is about to do; call it before the first request.
func (e *Expectations) Expect(owner types.UID, creations int, deletions ...types.UID) {
	x := &expected{creations: creations, deletions: make(map[types.UID]struct{}, len(deletions)), since: e.now()}
	for _, uid := range deletions {
		x.deletions[uid] = struct{}{}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.met() {
		delete(e.all, owner)
		return
	}
	e.all[owner] = x
}

// Made notes the resourceVersion of a child that was created. It need not have been seen.
func (e *Expectations) Made(owner types.UID, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.all[owner]; x != nil && !older(version, x.made) {
		x.made = version
	}
}

// Created notes n creations that were seen, or that failed and will never be.
func (e *Expectations) Created(owner types.UID, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.all[owner]; x != nil {
		if x.creations -= n; x.met() {
			delete(e.all, owner)
		}
	}
}

// Deleted notes a deletion that was seen, or that failed and will never be.
func (e *Expectations) Deleted(owner types.UID, child types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.all[owner]; x != nil {
		if delete(x.deletions, child); x.met() {
			delete(e.all, owner)
		}
	}
}

// Forget drops what is known of an owner that is gone.
func (e *Expectations) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.all, owner)
}
