// Package flowcontrol bounds what the API server holds for callers who send or read slowly, how many bytes of large
// bodies it works on at a time and, without priority and fairness (package fairness), how many requests, reading and
// mutating ones apart.
package flowcontrol

import (
	"context"
	"time"
)

// Limits are plain bounds of work, for a server without priority and fairness. Some places are kept for the nodes and
// the control plane. A request beyond the bound waits a little for its turn, then is refused (HTTP 429).
type Limits struct {
	reading, mutating places
	patience          time.Duration
}

// places are what requests of one kind may take: everybody the common ones, a lane also those that are kept for it.
type places struct {
	common chan struct{}
	kept   [Exempt]chan struct{}
}

// New returns limits of that many requests (0: no bound), each waiting at most patience for its turn. An eighth of the
// places is kept for System, a sixteenth for Leases.
func New(reading, mutating int, patience time.Duration) *Limits {
	return &Limits{reading: newPlaces(reading), mutating: newPlaces(mutating), patience: patience}
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

// Turn is a place in use; the zero value is none.
type Turn struct{ place chan struct{} }

// Acquire waits for a turn. The caller ends the turn if it is granted.
func (l *Limits) Acquire(ctx context.Context, lane Lane, mutating bool) (Turn, bool) {
	p := l.of(mutating)
	if lane == Exempt || p.common == nil {
		return Turn{}, true
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	place, ok := p.take(ctx, lane)
	return Turn{place}, ok
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
