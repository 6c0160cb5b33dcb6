// Package housekeeping removes from the node what is no longer used: task by task, in periods.
package housekeeping

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Task removes one kind of things. What there is gets listed first, and whether it may go is asked at the moment of
// each removal, in a way that the answer holds until the removal is done: a pod may arrive at any time, and what it has
// must stay.
type Task struct {
	// What is removed, for the log.
	What string
	Do   func(ctx context.Context) error
}

// Round is tasks that are done together, at first after one period.
type Round struct {
	Every time.Duration
	// Ready reports whether the round may be done now; nil: it always may.
	Ready func() bool
	Tasks []Task
}

// Run does the rounds, each apart from the others, until ctx ends. A task that fails is logged and tried again in the
// next round.
func Run(ctx context.Context, rounds []Round, log *slog.Logger) error {
	var wg sync.WaitGroup
	for _, r := range rounds {
		wg.Go(func() { r.run(ctx, log) })
	}
	wg.Wait()
	return nil
}

func (r Round) run(ctx context.Context, log *slog.Logger) {
	t := time.NewTicker(r.Every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if r.Ready != nil && !r.Ready() {
			continue
		}
		for _, task := range r.Tasks {
			if err := task.Do(ctx); err != nil && ctx.Err() == nil {
				log.Warn("cleaning up failed", "what", task.What, "err", err)
			}
		}
	}
}
