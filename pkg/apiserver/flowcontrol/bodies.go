package flowcontrol

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bodies of up to smallBody bytes are bounded by the turns of their requests alone. Larger ones cost many times their size to decode and to
// validate; at most largeBodies bytes of them are in work at once, a body beyond that alone.
const (
	smallBody   = 64 << 10
	largeBodies = 6 << 20
)

// Large bodies whose requests wait to be worked on, in bytes: of everybody, and of one user. Small ones do not count: the queues
// bound them, and large ones of others must not keep them from waiting.
const (
	maxWaiting     = 64 << 20
	maxUserWaiting = 16 << 20
)

// Bodies bounds the bytes of large bodies in work and of those that wait for it, apart for others and for the system.
type Bodies struct {
	large    [2]*semaphore.Weighted
	waiting  *Shares
	patience time.Duration
}

// NewBodies returns a bound that nobody has taken of, for which one waits at most patience.
func NewBodies(patience time.Duration) *Bodies {
	return &Bodies{large: [2]*semaphore.Weighted{semaphore.NewWeighted(largeBodies), semaphore.NewWeighted(largeBodies)},
		waiting: NewShares(maxWaiting, maxUserWaiting), patience: patience}
}

// Wait tells whether a request of user may wait, for its turn and then for Take, with a body that takes so much memory. Itself it waits
// for nothing. When the request waits no more, the caller says so by Waited, with the same arguments.
func (b *Bodies) Wait(lane Lane, user string, bytes int) bool {
	return bytes <= smallBody || b.waiting.Take(lane, user, int64(bytes))
}

// Waited ends what Wait began.
func (b *Bodies) Waited(lane Lane, user string, bytes int) {
	if bytes > smallBody {
		b.waiting.Give(lane, user, int64(bytes))
	}
}

// Body is a large body in work; the zero value is none.
type Body struct {
	of    *semaphore.Weighted
	bytes int64
}

// Take waits until a body of that many bytes may be worked on, and tells whether it may. The caller gives it back.
func (b *Bodies) Take(ctx context.Context, lane Lane, bytes int) (Body, bool) {
	if bytes <= smallBody || lane == Exempt {
		return Body{}, true
	}
	ctx, cancel := context.WithTimeout(ctx, b.patience)
	defer cancel()
	held := Body{b.large[min(lane, 1)], min(int64(bytes), largeBodies)}
	if held.of.Acquire(ctx, held.bytes) != nil {
		return Body{}, false
	}
	return held, true
}

// Give gives it back.
func (b Body) Give() {
	if b.of != nil {
		b.of.Release(b.bytes)
	}
}
