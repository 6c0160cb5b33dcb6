// Package flowcontrol bounds how many requests the API server works on at a time, reading and mutating ones apart, so that
// a flood of either leaves it answering. A request beyond the bound waits a little for its turn, then is refused (HTTP 429).
package flowcontrol

import (
	"context"
	"time"
)

// Limits holds the two bounds.
type Limits struct {
	reading, mutating chan struct{}
	patience          time.Duration
}

// New returns limits of that many requests (0: no bound), each waiting at most patience for its turn.
func New(reading, mutating int, patience time.Duration) *Limits {
	return &Limits{reading: slots(reading), mutating: slots(mutating), patience: patience}
}

func slots(n int) chan struct{} {
	if n <= 0 {
		return nil
	}
	return make(chan struct{}, n)
}

// Acquire waits for a turn. If it is granted, the caller calls Release with the same argument when done.
func (l *Limits) Acquire(ctx context.Context, mutating bool) bool {
	c := l.of(mutating)
	if c == nil {
		return true
	}
	select {
	case c <- struct{}{}:
		return true
	default:
	}
	t := time.NewTimer(l.patience)
	defer t.Stop()
	select {
	case c <- struct{}{}:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// Release ends a turn.
func (l *Limits) Release(mutating bool) {
	if c := l.of(mutating); c != nil {
		<-c
	}
}

// InFlight is how many requests have their turn now; 0 without a bound.
func (l *Limits) InFlight(mutating bool) int { return len(l.of(mutating)) }

func (l *Limits) of(mutating bool) chan struct{} {
	if mutating {
		return l.mutating
	}
	return l.reading
}
