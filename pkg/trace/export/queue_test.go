package export

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"bonsai/pkg/trace"
)

// fake is a collector as the queue sees it.
type fake struct {
	mu      sync.Mutex
	batches []int
	rejects int
	export  func(ctx context.Context) error
}

func (f *fake) Send(ctx context.Context, b *batch) (int, error) {
	if f.export != nil {
		if err := f.export(ctx); err != nil {
			return 0, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches = append(f.batches, b.spans)
	return f.rejects, nil
}

func (f *fake) sent() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range f.batches {
		n += b
	}
	return n
}

// newTracer returns what makes spans for a queue.
func newTracer(t *testing.T, f *fake) (*trace.Tracer, *queue) {
	q := newQueue(t.Context(), f, newCounts(prometheus.NewRegistry()), slog.New(slog.DiscardHandler), patience)
	return trace.New(trace.Config{Component: "x", PerMillion: 1_000_000, Outlet: q}), q
}

func step(t *trace.Tracer, name string) {
	o := trace.Object{}
	o.UID = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
	t.Step(o, trace.Step{Name: name})
}

func (q *queue) counted() [3]float64 {
	return [3]float64{testutil.ToFloat64(q.count.sent), testutil.ToFloat64(q.count.failed),
		testutil.ToFloat64(q.count.dropped)}
}

// TestBatches: spans are sent together, a second after the first one or when there are many, and the last ones at the
// end.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		tracer, q := newTracer(t, f)
		step(tracer, "a")
		time.Sleep(delay / 2)
		step(tracer, "b")
		synctest.Wait()
		if n := f.sent(); n != 0 {
			t.Errorf("%d spans are sent at once", n)
		}
		time.Sleep(delay)
		synctest.Wait()
		for range batchSpans + 1 {
			step(tracer, "c")
		}
		synctest.Wait()
		if got := f.sent(); got < 2+batchSpans {
			t.Errorf("%d spans are sent of a full batch", got)
		}
		q.Close()
		step(tracer, "late")
		q.Close()
		if got, want := q.counted(), [3]float64{2 + batchSpans + 1, 0, 1}; got != want || f.batches[0] != 2 {
			t.Errorf("sent, failed and dropped are %v, want %v; batches of %v", got, want, f.batches)
		}
	})
}

// TestStuck: a collector that takes nothing costs spans, but nobody's time: neither of who makes them, nor, beyond two
// seconds, of the component's end.
func TestStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{export: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		tracer, q := newTracer(t, f)
		begun := time.Now()
		for range batchSpans + maxSpans + 100 {
			step(tracer, "x")
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("making spans took %v", took)
		}
		synctest.Wait()
		q.mu.Lock()
		n, bytes := q.spans, q.bytes
		q.mu.Unlock()
		if n > maxSpans || bytes > maxBytes {
			t.Errorf("%d spans of %d bytes wait", n, bytes)
		}
		begun = time.Now()
		q.Close()
		if took := time.Since(begun); took > last {
			t.Errorf("the end took %v", took)
		}
		if c := q.counted(); c[0] != 0 || c[1]+c[2] != batchSpans+maxSpans+100 {
			t.Errorf("sent, failed and dropped are %v", c)
		}
	})
}

// TestBytes: few large spans fill the queue, too, and a batch.
func TestBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{export: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		_, q := newTracer(t, f)
		const size = 1 << 16
		long := make([]byte, size)
		for range 2 * maxBytes / size {
			q.Take(long)
		}
		q.mu.Lock()
		n, bytes := q.spans, q.bytes
		for _, b := range q.batches {
			if b.bytes > batchBytes+size {
				t.Errorf("a batch has %d bytes", b.bytes)
			}
		}
		q.mu.Unlock()
		if bytes > maxBytes+size || n > maxBytes/size || n < maxBytes/size/2 {
			t.Errorf("%d spans of %d bytes wait", n, bytes)
		}
		q.Close()
	})
}

// TestRejected: what a collector did not want of a batch is not counted as sent.
func TestRejected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tracer, q := newTracer(t, &fake{rejects: 2})
		for range 5 {
			step(tracer, "x")
		}
		q.Close()
		if got, want := q.counted(), [3]float64{3, 2, 0}; got != want {
			t.Errorf("sent, failed and dropped are %v, want %v", got, want)
		}
	})
}

// TestLost: a batch that is not taken within a minute is given up, and the next ones are sent when the collector is
// back.
func TestLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		back := false
		f := &fake{export: func(ctx context.Context) error {
			mu.Lock()
			defer mu.Unlock()
			if !back {
				return errors.New("gone")
			}
			return nil
		}}
		tracer, q := newTracer(t, f)
		step(tracer, "a")
		time.Sleep(2 * delay)
		mu.Lock()
		back = true
		mu.Unlock()
		step(tracer, "b")
		time.Sleep(2 * delay)
		q.Close()
		if got, want := q.counted(), [3]float64{1, 1, 0}; got != want {
			t.Errorf("sent, failed and dropped are %v, want %v", got, want)
		}
	})
}

// TestWordsOfCollector: what a collector says is cut and cleaned before it is logged.
func TestWordsOfCollector(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	q := newQueue(t.Context(), &fake{export: func(context.Context) error {
		return errors.New("\x1b[2J" + strings.Repeat("x", 1<<20))
	}}, newCounts(prometheus.NewRegistry()), slog.New(slog.NewTextHandler(&log, nil)), patience)
	step(trace.New(trace.Config{Component: "x", PerMillion: 1_000_000, Outlet: q}), "x.y")
	q.Close()
	if n := log.Len(); n == 0 || n > 4<<10 || strings.Contains(log.String(), "x1b") {
		t.Errorf("%d bytes: %.200s", n, log.String())
	}
}
