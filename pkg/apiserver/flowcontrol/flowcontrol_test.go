package flowcontrol

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1, 0, time.Second)
		ctx := t.Context()
		if !l.Acquire(ctx, false) {
			t.Fatal("the first request was refused")
		}
		start := time.Now()
		if l.Acquire(ctx, false) {
			t.Fatal("a request beyond the bound got a turn")
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("refused after %v, want 1s", d)
		}
		for range 10 {
			if !l.Acquire(ctx, true) {
				t.Fatal("mutating requests have no bound here")
			}
		}
		go func() {
			time.Sleep(100 * time.Millisecond)
			l.Release(false)
		}()
		if !l.Acquire(ctx, false) {
			t.Error("a freed turn was not given to the one who waits")
		}
		if n := l.InFlight(false); n != 1 {
			t.Errorf("in flight: %d, want 1", n)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if l.Acquire(gone, false) {
			t.Error("a request whose client left got a turn")
		}
	})
}
