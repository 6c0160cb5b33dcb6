package export

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"bonsai/pkg/safetext"
	"bonsai/pkg/trace"
)

// Bounds of what waits, and of how it is sent. The queue holds some seconds of a busy component. Beyond them spans are
// dropped and counted: nothing that the component does waits for a collector.
const (
	maxSpans = 4096
	maxBytes = 4 << 20
	// A batch is sent when it is full, of spans or of bytes, or delay after its first span. Collectors take 4 MiB.
	batchSpans = 512
	batchBytes = 1 << 20
	delay      = time.Second
	// patience is how long a batch is tried to be sent, with the waits between the tries. Then its spans are lost, so
	// that what waits is never old.
	patience = time.Minute
	// last is how long Close waits for what still waits.
	last = 2 * time.Second
)

// collector is where spans are sent to.
type collector interface {
	// Send returns how many spans of a batch were not wanted, and an error if none was taken.
	Send(ctx context.Context, b *batch) (rejected int, err error)
}

// batch is some spans as they are sent, each with the tag of its field. They lie in pieces, each twice as large as the
// one before it up to mostPiece: a batch of few spans is small, and none is copied as it grows.
type batch struct {
	pieces       [][]byte
	spans, bytes int
}

const (
	firstPiece = 4 << 10
	mostPiece  = 64 << 10
)

// takes reports whether a batch has room for a span.
func (b *batch) takes(span []byte) bool {
	return b.spans < batchSpans && (b.spans == 0 || b.bytes+len(span) <= batchBytes)
}

// add returns by how many bytes the batch has grown.
func (b *batch) add(span []byte) int {
	const spans = 2 // of ScopeSpans
	size := protowire.SizeTag(spans) + protowire.SizeBytes(len(span))
	n := len(b.pieces)
	if n == 0 || cap(b.pieces[n-1])-len(b.pieces[n-1]) < size {
		next := firstPiece
		if n > 0 {
			next = min(2*cap(b.pieces[n-1]), mostPiece)
		}
		b.pieces = append(b.pieces, make([]byte, 0, max(next, size)))
		n++
	}
	b.pieces[n-1] = protowire.AppendBytes(protowire.AppendTag(b.pieces[n-1], spans, protowire.BytesType), span)
	b.spans++
	b.bytes += size
	return size
}

// queue takes spans and sends them. Its methods are safe for concurrent use.
type queue struct {
	to       collector
	count    *counts
	log      *slog.Logger
	patience time.Duration
	// some has room for one: there are spans. full has, too: there is a batch that is full.
	some, full chan struct{}
	// ending is closed by Close, ended when the last batch has been sent, or was given up.
	ending, ended chan struct{}
	stop          context.CancelFunc // of what is being sent

	mu      sync.Mutex // guards what follows; nothing waits under it
	batches []*batch   // the last one is being filled
	spans   int
	bytes   int
	closed  bool
}

var _ trace.Outlet = (*queue)(nil)

// newQueue returns a queue that sends until Close, which its owner calls.
func newQueue(ctx context.Context, to collector, c *counts, log *slog.Logger, patience time.Duration) *queue {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	q := &queue{to: to, count: c, log: log, patience: patience, some: make(chan struct{}, 1),
		full: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan struct{}), stop: stop}
	go q.run(ctx)
	return q
}

// Take implements trace.Outlet. It never waits.
func (q *queue) Take(span []byte) {
	q.mu.Lock()
	if q.closed || q.spans >= maxSpans || q.bytes+len(span) > maxBytes {
		q.mu.Unlock()
		q.count.dropped.Inc()
		return
	}
	q.spans++
	first, full := q.spans == 1, false
	if n := len(q.batches); n == 0 || !q.batches[n-1].takes(span) {
		full = n > 0
		q.batches = append(q.batches, &batch{})
	}
	last := q.batches[len(q.batches)-1]
	q.bytes += last.add(span)
	full = full || last.spans == batchSpans
	q.mu.Unlock()
	if first {
		notify(q.some)
	}
	if full {
		notify(q.full)
	}
}

func notify(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
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
		for b := q.take(true); b != nil; b = q.take(ending) {
			if ctx.Err() != nil { // nobody waits for them any more
				q.count.dropped.Add(float64(b.spans))
				continue
			}
			failing = q.send(ctx, b, failing)
		}
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

// take removes the first batch, nil if there is none, or if it is not full and only a full one is wanted. If any is
// left, it is due.
func (q *queue) take(any bool) (first *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.batches); n > 1 || n == 1 && (any || q.batches[0].spans == batchSpans) {
		first = q.batches[0]
		q.batches = append(q.batches[:0], q.batches[1:]...)
		q.spans -= first.spans
		q.bytes -= first.bytes
	}
	if len(q.batches) > 0 {
		notify(q.some)
	}
	return first
}

// send sends a batch, and reports whether it failed. The log tells the first failure of a row and its end.
func (q *queue) send(ctx context.Context, b *batch, failed bool) bool {
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	rejected, err := q.to.Send(ctx, b)
	if err != nil {
		q.count.failed.Add(float64(b.spans))
		if !failed && ctx.Err() != context.Canceled {
			q.log.Warn("spans are lost: the collector of traces does not take them", "spans", b.spans,
				"err", safetext.Error(err))
		}
		return true
	}
	rejected = min(rejected, b.spans)
	q.count.failed.Add(float64(rejected))
	q.count.sent.Add(float64(b.spans - rejected))
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
