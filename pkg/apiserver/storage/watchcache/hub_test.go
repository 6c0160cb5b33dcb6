package watchcache

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bonsai/pkg/apiserver/storage"
)

// TestHubResetWakes: a reader that waits for the revision at which the hub starts over is woken by that.
func TestHubResetWakes(t *testing.T) {
	t.Parallel()
	var h hub
	waited := make(chan error)
	go func() { waited <- h.wait(t.Context(), 3) }()
	for waiting := 0; waiting == 0; {
		h.mu.Lock()
		waiting = len(h.waiters)
		h.mu.Unlock()
	}
	h.reset(3)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
}

// deaf is a watch whose backend takes no question until it stops.
type deaf struct {
	storage.Watch
	asked   atomic.Int64
	stopped chan struct{}
}

func (d *deaf) RequestProgress(context.Context) error {
	d.asked.Add(1)
	<-d.stopped
	return nil
}

// TestHubWaitsNoLonger: who waits for a revision waits no longer because the backend takes no question, and that is
// asked again when there is another watch.
func TestHubWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &deaf{stopped: make(chan struct{})}
		h := hub{watch: first}
		waited := func(ctx context.Context, want error, limit time.Duration) {
			start := time.Now()
			if err := h.wait(ctx, 3); !errors.Is(err, want) || time.Since(start) != limit {
				t.Errorf("%v after %v, want %v after %v", err, time.Since(start), want, limit)
			}
		}
		go func() {
			time.Sleep(time.Minute)
			close(first.stopped)
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		waited(ctx, context.DeadlineExceeded, time.Second)
		waited(t.Context(), storage.ErrFuture, storage.FutureWait)
		if n := first.asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
		time.Sleep(time.Minute)
		second := &deaf{stopped: make(chan struct{})}
		close(second.stopped)
		h.watch = second
		waited(t.Context(), storage.ErrFuture, storage.FutureWait)
		if n := second.asked.Load(); n < 2 {
			t.Errorf("the second watch was asked %d times", n)
		}
	})
}
