// Package inflight bounds what the API server holds for callers who send or read slowly, how many bytes of large
// bodies it works on at a time and, without priority and fairness (package fairness), how many requests, reading and
// mutating ones apart.
package inflight

import (
	"context"
	"time"
)

// Limits are plain bounds of work, for a server without priority and fairness. Some permits are kept for the nodes and
// the control plane. A request beyond the bound waits a little for its turn, then is refused (HTTP 429).
type Limits struct {
	reading, mutating permits
	patience          time.Duration
}

// permits are the turns of reading or of mutating requests. Any request may take a common one; a lane also has permits
// of its own, which others cannot take. A permit is in use while its channel holds an element for it.
type permits struct {
	common chan struct{}
	kept   [Exempt]chan struct{}
}

// New returns limits of that many requests (0: no bound), each waiting at most patience for its turn. An eighth of the
// permits is kept for System, a sixteenth for Leases.
func New(reading, mutating int, patience time.Duration) *Limits {
	return &Limits{reading: newPermits(reading), mutating: newPermits(mutating), patience: patience}
}

func newPermits(n int) permits {
	if n <= 0 {
		return permits{}
	}
	var p permits
	p.kept[System] = make(chan struct{}, n/8)
	p.kept[Leases] = make(chan struct{}, n/16)
	p.common = make(chan struct{}, n-n/8-n/16)
	return p
}

// Turn is a permit in use; the zero value is none.
type Turn struct{ permit chan struct{} }

// Acquire waits for a turn. The caller ends the turn if it is granted.
func (l *Limits) Acquire(ctx context.Context, lane Lane, mutating bool) (Turn, bool) {
	p := l.of(mutating)
	if lane == Exempt || p.common == nil {
		return Turn{}, true
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	permit, ok := p.take(ctx, lane)
	return Turn{permit}, ok
}

// take takes a permit that is kept for lane, else a common one.
func (p *permits) take(ctx context.Context, lane Lane) (chan struct{}, bool) {
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
	if t.permit != nil {
		<-t.permit
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

func (l *Limits) of(mutating bool) *permits {
	if mutating {
		return &l.mutating
	}
	return &l.reading
}
