package controller

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Tickers of one period tick together, whenever they were made, and stop alone.
func TestTickersTickTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, begin := newTicks(), time.Now()
		first := c.NewTicker(10 * time.Second)
		time.Sleep(3 * time.Second)
		second, other := c.NewTicker(10*time.Second), c.NewTicker(4*time.Second)
		for i, want := range []time.Duration{10 * time.Second, 20 * time.Second} {
			for _, ticker := range []<-chan time.Time{first.C(), second.C()} {
				if at := (<-ticker).Sub(begin); at != want || time.Since(begin) != want {
					t.Errorf("tick %d of %v at %v, want %v", i, at, time.Since(begin), want)
				}
			}
		}
		if at := (<-other.C()).Sub(begin); at != 7*time.Second { // taken late: it was kept, and later ones were not
			t.Errorf("the other's first tick was at %v", at)
		}
		first.Stop()
		first.Stop()
		if at := (<-second.C()).Sub(begin); at != 30*time.Second {
			t.Errorf("alone it ticks at %v", at)
		}
		select {
		case at := <-first.C():
			t.Errorf("a stopped ticker ticked at %v", at.Sub(begin))
		default:
		}
		second.Stop()
		other.Stop()
		if len(c.sources) != 0 {
			// and synctest fails for a goroutine that stays
			t.Errorf("%d sources go on without listeners", len(c.sources))
		}
	})
}

// An idle process wakes for all its loops at once: no loop has a source of ticks of its own.
func TestLoopsShareTheirTicks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := NewMetrics(prometheus.NewRegistry())
		for _, name := range []string{"a", "b", "c"} {
			loop := NewLoop(LoopConfig{Name: name, Metrics: m}, func(context.Context, string) (Result, error) {
				return Result{}, nil
			})
			defer loop.queue.ShutDown()
		}
		synctest.Wait()
		listeners := 0
		for _, s := range m.ticks.sources {
			listeners += len(s.listeners)
		}
		// Each loop's: twice a second, and the heartbeat of its delayed keys.
		if listeners != 6 || len(m.ticks.sources) != 2 {
			t.Errorf("%d tickers on %d sources, want 6 on 2", listeners, len(m.ticks.sources))
		}
	})
}
