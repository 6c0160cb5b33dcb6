package watchcache

import (
	"context"
	"fmt"
	"sync"
)

// readIndex shares one read of the backend's revision among all callers that were there before it began: a later read
// could give none of them more. At most one read runs at a time; who comes meanwhile waits for the next.
type readIndex struct {
	read func() (int64, error)
	run  func(func()) // starts a goroutine that its owner waits for

	mu      sync.Mutex // not held while reading, so that callers gather meanwhile
	next    *round     // gathers callers; nil if there are none
	running bool
}

// round is one read and those who wait for it. revision and err may be read when done is closed.
type round struct {
	done     chan struct{}
	revision int64
	err      error
}

// get returns a revision that the backend had after the call began. A caller whose ctx ends leaves; the read goes on
// for the others. An error of the read goes to all callers of its round.
func (x *readIndex) get(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("watchcache: read the storage's revision: %w", err)
	}
	x.mu.Lock()
	r := x.next
	if r == nil {
		r = &round{done: make(chan struct{})}
		x.next = r
	}
	if !x.running {
		x.running = true
		x.run(x.rounds)
	}
	x.mu.Unlock()
	select {
	case <-r.done:
		return r.revision, r.err
	case <-ctx.Done():
		return 0, fmt.Errorf("watchcache: read the storage's revision: %w", ctx.Err())
	}
}

// rounds reads until no one waits. At most one goroutine runs it, and it ends when there is nothing to do: an idle
// cache asks nothing. Under load each round serves all callers that came during the one before, so the backend sees one
// request at a time however many readers there are.
func (x *readIndex) rounds() {
	for {
		x.mu.Lock()
		r := x.next
		x.next = nil // before the read: the answer may be older than a caller who comes from now on
		x.running = r != nil
		x.mu.Unlock()
		if r == nil {
			return
		}
		r.revision, r.err = x.read()
		close(r.done)
	}
}
