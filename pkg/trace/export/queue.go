package export

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"bonsai/pkg/safetext"
)

// Bounds of what waits, and of how it is sent. The queue holds some seconds of a busy component. Beyond them spans are
// dropped and counted: nothing that the component does waits for a collector.
const (
	maxSpans = 4096
	maxBytes = 4 << 20
	// A batch is sent when it is full, or delay after its first span.
	batch = 512
	delay = time.Second
	// patience is how long a batch is tried to be sent, with the waits between the tries. Then its spans are lost, so
	// that what waits is never old.
	patience = time.Minute
	// last is how long Close waits for what still waits.
	last = 2 * time.Second
)

// sender sends spans to a collector.
type sender interface {
	ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error
	Shutdown(ctx context.Context) error
}

// queue takes spans and sends them. Its methods are safe for concurrent use.
type queue struct {
	sender   sender
	count    *counts
	log      *slog.Logger
	patience time.Duration
	// some has room for one: there are spans. full has, too: there is a batch of them.
	some, full chan struct{}
	// ending is closed by Close, ended when the last batch has been sent, or was given up.
	ending, ended chan struct{}
	stop          context.CancelFunc // of what is being sent

	mu     sync.Mutex // guards what follows; nothing waits under it
	spans  []waiting
	bytes  int
	closed bool
}

// waiting is a span that has not been sent, and about how many bytes it takes.
type waiting struct {
	span sdktrace.ReadOnlySpan
	size int
}

var _ sdktrace.SpanProcessor = (*queue)(nil)

// newQueue returns a queue that sends until Close, which its owner calls.
func newQueue(ctx context.Context, s sender, c *counts, log *slog.Logger, patience time.Duration) *queue {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	q := &queue{sender: s, count: c, log: log, patience: patience, some: make(chan struct{}, 1),
		full: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan struct{}), stop: stop}
	go q.run(ctx)
	return q
}

// OnStart implements sdktrace.SpanProcessor.
func (*queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It never waits.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	size := sizeOf(s)
	q.mu.Lock()
	if q.closed || len(q.spans) >= maxSpans || q.bytes+size > maxBytes {
		q.mu.Unlock()
		q.count.dropped.Inc()
		return
	}
	q.spans, q.bytes = append(q.spans, waiting{s, size}), q.bytes+size
	n := len(q.spans)
	q.mu.Unlock()
	if n == 1 {
		notify(q.some)
	}
	if n >= batch {
		notify(q.full)
	}
}

func notify(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// sizeOf is about how many bytes a span takes in memory.
func sizeOf(s sdktrace.ReadOnlySpan) int {
	const span, attribute, link = 640, 72, 256
	n := span + len(s.Name()) + link*len(s.Links()) + len(s.Status().Description)
	for _, a := range s.Attributes() {
		n += attribute + len(a.Key) + len(a.Value.AsString())
	}
	return n
}

// run sends batches until Close, then what is left.
func (q *queue) run(ctx context.Context) {
	defer close(q.ended)
	failing := false
	for ending := false; !ending; {
		select {
		case <-q.some:
			ending = q.gather()
		case <-q.ending:
			ending = true
		}
		for n := batch; n == batch && ctx.Err() == nil; {
			spans := q.take()
			if n = len(spans); n > 0 {
				failing = q.send(ctx, spans, failing)
			}
		}
	}
	for left := q.take(); len(left) > 0; left = q.take() { // nobody waits for them any more
		q.count.dropped.Add(float64(len(left)))
	}
}

// gather waits until a batch is full or old enough, and reports whether Close was called.
func (q *queue) gather() (ending bool) {
	t := time.NewTimer(delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-q.full:
	case <-q.ending:
		return true
	}
	return false
}

// take removes a batch from the queue. If more is left, the next one is due.
func (q *queue) take() []sdktrace.ReadOnlySpan {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.spans), batch)
	out := make([]sdktrace.ReadOnlySpan, n)
	for i, w := range q.spans[:n] {
		out[i] = w.span
		q.bytes -= w.size
	}
	rest := copy(q.spans, q.spans[n:])
	clear(q.spans[rest:])
	if q.spans = q.spans[:rest]; rest > 0 {
		notify(q.some)
	}
	return out
}

// send sends a batch, and reports whether it failed. The log tells the first failure of a row and its end.
func (q *queue) send(ctx context.Context, spans []sdktrace.ReadOnlySpan, failed bool) bool {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	if err := q.sender.ExportSpans(ctx, spans); err != nil {
		q.count.failed.Add(float64(len(spans)))
		if !failed && ctx.Err() != context.Canceled {
			q.log.Warn("spans are lost: the collector of traces does not take them", "spans", len(spans),
				"err", safetext.Error(err))
		}
		return true
	}
	q.count.sent.Add(float64(len(spans)))
	if failed {
		q.log.Info("the collector of traces takes spans again")
	}
	return false
}

// Close sends what waits, for as long as last, and ends the queue. Later spans are dropped.
func (q *queue) Close() {
	q.mu.Lock()
	closed := q.closed
	q.closed = true
	q.mu.Unlock()
	if closed {
		return
	}
	close(q.ending)
	t := time.NewTimer(last)
	defer t.Stop()
	select {
	case <-q.ended:
	case <-t.C:
	}
	q.stop()
	<-q.ended
}

// Shutdown implements sdktrace.SpanProcessor.
func (q *queue) Shutdown(context.Context) error {
	q.Close()
	return nil
}

// ForceFlush implements sdktrace.SpanProcessor. Nobody needs it: Close sends what waits.
func (*queue) ForceFlush(context.Context) error { return nil }
