// Package boundedfrequency writes the changes of a state in rounds: at once after a quiet time, with a minimum period
// under load, and again after errors. kube-proxy and the pod network's agent write packet rules and routes this way.
package boundedfrequency

import (
	"context"
	"log/slog"
	"time"
)

// retryAfter is the pause after a failed round; it doubles up to retryMax. The first is short because most failures
// pass (another program was writing rules), the last long because a round that goes on failing writes all of its
// services each time.
const (
	retryAfter = 200 * time.Millisecond
	retryMax   = 30 * time.Second
)

// State is what rounds write, for example into the kernel.
type State interface {
	// Changed fires after a change.
	Changed() <-chan struct{}
	// Ready reports whether enough is known for a round. An earlier round would remove rules whose objects have not
	// arrived yet.
	Ready() bool
}

// Runner runs a round at once after a quiet time, at most every MinPeriod under load, and again after errors.
type Runner struct {
	// Settle is how long further changes may join the first one; MinPeriod the shortest time between two rounds.
	Settle, MinPeriod time.Duration
	// Resync repeats a round without changes, which lets it repair what others broke. 0 never does.
	Resync time.Duration
	Log    *slog.Logger
}

// Run runs rounds until ctx ends, and returns ctx's error.
func (r *Runner) Run(ctx context.Context, state State, round func(context.Context) error) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last time.Time
	backoff := retryAfter
	arm := func(d time.Duration) { timer.Reset(d) }
	if r.Resync > 0 {
		arm(r.Resync)
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-state.Changed():
			arm(max(r.Settle, r.MinPeriod-time.Since(last)))
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
			r.Log.Error("Could not write the rules, trying again", "err", err, "after", backoff)
			arm(backoff)
			backoff = min(2*backoff, retryMax)
		case r.Resync > 0:
			backoff = retryAfter
			arm(r.Resync)
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
