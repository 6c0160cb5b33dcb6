// Package flowcontrol bounds how many requests the API server works on at a time, reading and mutating ones apart, and how much
// it holds for callers who send or read slowly, so that a flood leaves it answering. Some places are kept for the nodes and the
// control plane. A request beyond the bound waits a little for its turn, then is refused (HTTP 429).
package flowcontrol

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"
)

// Limits holds the bounds of work.
type Limits struct {
	reading, mutating places
	// large bounds the bytes of large bodies in work, apart for others and for the system.
	large    [2]*semaphore.Weighted
	patience time.Duration
}

// Bodies of up to smallBody bytes are bounded by the places alone. Larger ones cost many times their size to decode and to
// validate; at most largeBodies bytes of them are in work at once, a body beyond that alone.
const (
	smallBody   = 64 << 10
	largeBodies = 6 << 20
)

// places are what requests of one kind may take: everybody the common ones, a lane also those that are kept for it.
type places struct {
	common chan struct{}
	kept   [Exempt]chan struct{}
}

// New returns limits of that many requests (0: no bound), each waiting at most patience for its turn. An eighth of the places
// is kept for System, a sixteenth for Leases.
func New(reading, mutating int, patience time.Duration) *Limits {
	l := &Limits{reading: newPlaces(reading), mutating: newPlaces(mutating), patience: patience}
	for i := range l.large {
		l.large[i] = semaphore.NewWeighted(largeBodies)
	}
	return l
}

func newPlaces(n int) places {
	if n <= 0 {
		return places{}
	}
	var p places
	p.kept[System] = make(chan struct{}, n/8)
	p.kept[Leases] = make(chan struct{}, n/16)
	p.common = make(chan struct{}, n-n/8-n/16)
	return p
}

// Turn is a place in use.
type Turn struct {
	place chan struct{}
	large *semaphore.Weighted
	bytes int64
}

// Acquire waits for a turn for a request with a body of that many bytes. The caller ends the turn if it is granted.
func (l *Limits) Acquire(ctx context.Context, lane Lane, mutating bool, body int) (Turn, bool) {
	if lane == Exempt {
		return Turn{}, true
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	t := Turn{}
	if body > smallBody {
		t.large, t.bytes = l.large[min(lane, 1)], min(int64(body), largeBodies)
		if t.large.Acquire(ctx, t.bytes) != nil {
			return Turn{}, false
		}
	}
	p := l.of(mutating)
	if p.common == nil {
		return t, true
	}
	var ok bool
	if t.place, ok = p.take(ctx, lane); !ok {
		t.End()
		return Turn{}, false
	}
	return t, true
}

// take takes a place that is kept for lane, else a common one.
func (p *places) take(ctx context.Context, lane Lane) (chan struct{}, bool) {
	kept := p.kept[lane]
	select {
	case kept <- struct{}{}:
		return kept, true
	default:
	}
	if ctx.Err() != nil {
		return nil, false
	}
	select {
	case kept <- struct{}{}:
		return kept, true
	case p.common <- struct{}{}:
		return p.common, true
	case <-ctx.Done():
	}
	return nil, false
}

// End ends the turn.
func (t Turn) End() {
	if t.large != nil {
		t.large.Release(t.bytes)
	}
	if t.place != nil {
		<-t.place
	}
}

// InFlight is how many requests have their turn now; 0 without a bound.
func (l *Limits) InFlight(mutating bool) int {
	p := l.of(mutating)
	n := len(p.common)
	for _, kept := range p.kept {
		n += len(kept)
	}
	return n
}

func (l *Limits) of(mutating bool) *places {
	if mutating {
		return &l.mutating
	}
	return &l.reading
}
