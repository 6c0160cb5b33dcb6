package inflight

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// Bodies of up to smallBody bytes are bounded by the turns of their requests alone. Larger ones cost many times their
// size to decode and to validate; at most largeBodies bytes of them are in work at once, a body beyond that alone.
const (
	smallBody   = 64 << 10
	largeBodies = 6 << 20
)

// Large bodies whose requests wait to be worked on, in bytes: of everybody, and of one caller. Small ones do not count:
// the queues bound them, and large ones of others must not keep them from waiting.
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
	return &Bodies{large: [2]*semaphore.Weighted{semaphore.NewWeighted(largeBodies),
		semaphore.NewWeighted(largeBodies)},
		waiting: NewShares(maxWaiting, maxUserWaiting, 0), patience: patience}
}

// Wait begins to hold the room of a body that takes so much memory while its request waits, for its turn and then for
// Take. Itself it waits for nothing; ok reports whether there is room. The request waits with the returned context,
// which also ends for a caller who has less that waits. The caller calls done when the wait is over.
func (b *Bodies) Wait(ctx context.Context, lane Lane, caller string, bytes int) (waits context.Context, done func(),
	ok bool) {
	if bytes <= smallBody {
		return ctx, func() {}, true
	}
	waits, cancel := context.WithCancel(ctx)
	room := b.waiting.Hold(lane, caller, cancel)
	return waits, func() { room.Give(); cancel() }, room.Take(int64(bytes))
}

// Body is a large body in work; the zero value is none.
type Body struct {
	of    *semaphore.Weighted
	bytes int64
}

// Take waits until a body of that many bytes may be worked on, and reports whether it may. The caller gives it back.
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
