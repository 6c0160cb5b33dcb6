package controller

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// ticks is the real clock with tickers that tick at the same moment if they have the same period. Each work queue looks
// twice a second how long its work takes: sixty controllers would wake an idle process a hundred times a second, each
// at a moment of its own.
type ticks struct {
	clock.RealClock
	mu      sync.Mutex
	sources map[time.Duration]*tickSource // those that somebody listens to
}

// tickSource ticks for all tickers of one period.
type tickSource struct {
	stop      chan struct{}
	listeners map[*ticker]struct{} // guarded by the mutex of ticks
}

func newTicks() *ticks { return &ticks{sources: map[time.Duration]*tickSource{}} }

// NewTicker returns a ticker whose first tick may come sooner than period, with the next of the others.
func (c *ticks) NewTicker(period time.Duration) clock.Ticker {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[period]
	if s == nil {
		s = &tickSource{stop: make(chan struct{}), listeners: map[*ticker]struct{}{}}
		c.sources[period] = s
		go c.run(s, period) // until its last ticker is stopped
	}
	t := &ticker{clock: c, period: period, source: s, c: make(chan time.Time, 1)}
	s.listeners[t] = struct{}{}
	return t
}

func (c *ticks) run(s *tickSource, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.tell(s, now)
		case <-s.stop:
			return
		}
	}
}

// tell wakes the listeners, but those that have not taken the last tick yet.
func (c *ticks) tell(s *tickSource, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for t := range s.listeners {
		select {
		case t.c <- now:
		default:
		}
	}
}

// ticker is one of those that a source ticks for.
type ticker struct {
	clock  *ticks
	period time.Duration
	source *tickSource
	c      chan time.Time
}

func (t *ticker) C() <-chan time.Time { return t.c }

// Stop may be called more than once.
func (t *ticker) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	if _, listens := t.source.listeners[t]; !listens {
		return
	}
	if delete(t.source.listeners, t); len(t.source.listeners) == 0 {
		close(t.source.stop)
		delete(t.clock.sources, t.period)
	}
}
