package boundedfrequency_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/boundedfrequency"
)

// state is a State that the test changes.
type state struct {
	changed chan struct{}
	ready   bool
}

func (s *state) Changed() <-chan struct{} { return s.changed }
func (s *state) Ready() bool              { return s.ready }

// change marks the state as changed; several marks are one.
func (s *state) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// TestRunner: when rounds begin, by the clock, after the changes of each case.
func TestRunner(t *testing.T) {
	for name, c := range map[string]struct {
		runner   boundedfrequency.Runner
		notReady bool
		changes  []time.Duration // since the start
		failures int             // rounds that fail, the first ones
		want     []time.Duration
	}{
		"at once when it was quiet": {
			runner: boundedfrequency.Runner{MinPeriod: time.Second}, changes: []time.Duration{time.Minute},
			want: []time.Duration{time.Minute},
		},
		"changes that come while the first settles share its round": {
			runner:  boundedfrequency.Runner{Settle: 10 * time.Millisecond},
			changes: []time.Duration{time.Minute, time.Minute + 5*time.Millisecond},
			want:    []time.Duration{time.Minute + 10*time.Millisecond},
		},
		"not too often under load": {
			runner: boundedfrequency.Runner{MinPeriod: time.Second},
			changes: []time.Duration{time.Minute, time.Minute + 100*time.Millisecond,
				time.Minute + 200*time.Millisecond},
			want: []time.Duration{time.Minute, time.Minute + time.Second},
		},
		"again after errors, later each time": {
			changes: []time.Duration{time.Minute}, failures: 3,
			want: []time.Duration{
				time.Minute, time.Minute + 200*time.Millisecond, time.Minute + 600*time.Millisecond,
				time.Minute + 1400*time.Millisecond,
			},
		},
		"repeated without changes": {
			runner: boundedfrequency.Runner{Resync: time.Hour}, want: []time.Duration{time.Hour, 2 * time.Hour},
		},
		"not before enough is known": {notReady: true, changes: []time.Duration{time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour+time.Minute)
				defer cancel()
				s := &state{changed: make(chan struct{}, 1), ready: !c.notReady}
				for _, at := range c.changes {
					time.AfterFunc(at, s.change)
				}
				c.runner.Log = slog.New(slog.DiscardHandler)
				var rounds []time.Duration
				err := c.runner.Run(ctx, s, func(context.Context) error {
					rounds = append(rounds, time.Since(began))
					if len(rounds) <= c.failures {
						return errors.New("refused")
					}
					return nil
				})
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Run returned %v", err)
				}
				if !slices.Equal(rounds, c.want) {
					t.Errorf("rounds at %v, not %v", rounds, c.want)
				}
			})
		})
	}
}
