// Package pace has changes of a state written in rounds: at once when it was quiet, not too often under load, and again after errors.
package pace

import (
	"context"
	"log/slog"
	"time"
)

// retryAfter is the pause after a failed round; it doubles up to retryMax. The first is short because most failures pass (another
// program was writing rules), the last long because a round that goes on failing writes all of its services each time.
const (
	retryAfter = 200 * time.Millisecond
	retryMax   = 30 * time.Second
)

// Changing is a state that rounds bring into the kernel.
type Changing interface {
	// Changed fires after a change.
	Changed() <-chan struct{}
	// Ready is set once enough is known for a round: before that one would remove what is only not known yet.
	Ready() bool
}

// Pace has a round made at once when it was quiet, at most every MinPeriod under load, and again after errors.
type Pace struct {
	// Settle is how long further changes may join the first one; MinPeriod the shortest time between two rounds.
	Settle, MinPeriod time.Duration
	// Resync repeats a round without changes, which lets it repair what others broke. 0 never does.
	Resync time.Duration
	Log    *slog.Logger
}

// Run makes rounds until ctx ends.
func (p *Pace) Run(ctx context.Context, state Changing, round func(context.Context) error) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last time.Time
	backoff := retryAfter
	arm := func(d time.Duration) { timer.Reset(d) }
	if p.Resync > 0 {
		arm(p.Resync)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-state.Changed():
			arm(max(p.Settle, p.MinPeriod-time.Since(last)))
			if !sleepUntil(ctx, timer) {
				return ctx.Err()
			}
		case <-timer.C:
		}
		select {
		case <-state.Changed(): // joined this round
		default:
		}
		if !state.Ready() {
			continue
		}
		last = time.Now()
		err := round(ctx)
		switch {
		case err != nil:
			p.Log.Error("Could not write the rules, trying again", "err", err, "after", backoff)
			arm(backoff)
			backoff = min(2*backoff, retryMax)
		case p.Resync > 0:
			backoff = retryAfter
			arm(p.Resync)
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
