package proxy

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Backend writes Updates down. After an error the next Update has what changed meanwhile; the backend must then repair what it
// missed.
type Backend interface {
	Apply(ctx context.Context, u Update) error
}

// Loop takes changes from State to the backends: at once when it was quiet, and at most every MinPeriod under load.
type Loop struct {
	State *State
	// Backends write what health depends on. Extras are tried after them, and again after an error, but a node of which one route
	// cannot be set yet is still healthy. After an error of Backends the services are reported again: an Extra that looks after
	// what old rules left behind must look once more when they are gone.
	Backends, Extras []Backend
	// Settle is how long further changes may join the first one; MinPeriod the shortest time between two rounds.
	Settle, MinPeriod time.Duration
	// Resync repeats a round without changes, which lets backends repair what others broke. 0 never does.
	Resync time.Duration
	// Done hears of every round: how long it took, and the first error of Backends.
	Done func(took time.Duration, err error)
	Log  *slog.Logger
}

// retryAfter is the pause after a failed round; it doubles up to retryMax.
const (
	retryAfter = 200 * time.Millisecond
	retryMax   = 30 * time.Second
)

// Run returns when ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last time.Time
	backoff := retryAfter
	arm := func(d time.Duration) { timer.Reset(d) }
	if l.Resync > 0 {
		arm(l.Resync)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.State.Changed():
			arm(max(l.Settle, l.MinPeriod-time.Since(last)))
			if !sleepUntil(ctx, timer) {
				return ctx.Err()
			}
		case <-timer.C:
		}
		select {
		case <-l.State.Changed(): // joined this round
		default:
		}
		if !l.State.Ready() {
			continue
		}
		last = time.Now()
		err := l.round(ctx)
		switch {
		case err != nil:
			l.Log.Error("Could not write the rules, trying again", "err", err, "after", backoff)
			arm(backoff)
			backoff = min(2*backoff, retryMax)
		case l.Resync > 0:
			backoff = retryAfter
			arm(l.Resync)
		default:
			backoff = retryAfter
		}
	}
}

func sleepUntil(ctx context.Context, timer *time.Timer) bool {
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// round tells every backend, whatever the others say.
func (l *Loop) round(ctx context.Context) error {
	start := time.Now()
	u := l.State.Take()
	rules := applyAll(ctx, l.Backends, u)
	l.Done(time.Since(start), rules)
	if rules != nil {
		l.State.Again(u)
	}
	return errors.Join(rules, applyAll(ctx, l.Extras, u))
}

func applyAll(ctx context.Context, backends []Backend, u Update) error {
	var errs []error
	for _, b := range backends {
		errs = append(errs, b.Apply(ctx, u))
	}
	return errors.Join(errs...)
}
