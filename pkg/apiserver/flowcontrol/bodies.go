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

// Bodies bounds the bytes of large bodies in work, apart for others and for the system.
type Bodies struct {
	large    [2]*semaphore.Weighted
	patience time.Duration
}

// NewBodies returns a bound that nobody has taken of, for which one waits at most patience.
func NewBodies(patience time.Duration) *Bodies {
	return &Bodies{[2]*semaphore.Weighted{semaphore.NewWeighted(largeBodies), semaphore.NewWeighted(largeBodies)}, patience}
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
