package sink

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// BatchOptions say how a queue is emptied.
type BatchOptions struct {
	// BufferSize is how many events wait at most, MaxSize how many are written at once.
	BufferSize, MaxSize int
	// MaxWait is how long events wait for others at most; 0: as long as it takes.
	MaxWait time.Duration
	// Throttle bounds how often is written: QPS times a second, and Burst times at once.
	Throttle bool
	QPS      float32
	Burst    int
}

func (o *BatchOptions) validate(which string) (errs []error) {
	bad := func(what string) {
		errs = append(errs, fmt.Errorf("invalid audit batch %s %s", which, what))
	}
	if o.BufferSize <= 0 {
		bad(fmt.Sprintf("buffer size %v, must be a positive number", o.BufferSize))
	}
	if o.MaxSize <= 0 {
		bad(fmt.Sprintf("max batch size %v, must be a positive number", o.MaxSize))
	}
	if o.Throttle && o.QPS <= 0 {
		bad(fmt.Sprintf("throttle QPS %v, must be a positive number", o.QPS))
	}
	if o.Throttle && o.Burst <= 0 {
		bad(fmt.Sprintf("throttle burst %v, must be a positive number", o.Burst))
	}
	return errs
}

// maxQueued bounds the objects in a queue, in bytes: the number of events alone would not.
const maxQueued = 64 << 20

// lastWait is how long the end waits for what is still in a queue to be written.
const lastWait = 10 * time.Second

// errFull is what becomes of events that a queue has no place for.
var errFull = errors.New("the queue of audit events is full")

// queue keeps events until they are written in batches. Process runs on the goroutines of requests; Run alone takes
// events out.
type queue struct {
	name   string
	opts   BatchOptions
	to     writer
	lost   func(events int, err error)
	events chan *auditv1.Event
	bytes  atomic.Int64 // of the objects in it
	limit  *rate.Limiter
}

func newQueue(name string, o BatchOptions, to writer, lost func(int, error)) *queue {
	q := &queue{name: name, opts: o, to: to, lost: lost, events: make(chan *auditv1.Event, o.BufferSize)}
	if o.Throttle {
		q.limit = rate.NewLimiter(rate.Limit(o.QPS), o.Burst)
	}
	return q
}

func (q *queue) Name() string { return q.name }
func (q *queue) Strict() bool { return false }

// Process puts events into the queue, if they have a place. It never blocks: a slow disk or webhook must not slow down
// requests. bytes is raised before the check, so concurrent calls cannot pass the bound together.
func (q *queue) Process(events ...*auditv1.Event) error {
	for _, e := range events {
		size := sizeOf(e)
		if q.bytes.Add(size) > maxQueued {
			q.bytes.Add(-size)
			return errFull
		}
		select {
		case q.events <- e:
		default:
			q.bytes.Add(-size)
			return errFull
		}
	}
	return nil
}

// sizeOf is about what an event holds in memory, in bytes. It must give the same at the entry and at the exit, or bytes
// would drift. So events do not change while they are in a queue.
func sizeOf(e *auditv1.Event) int64 {
	size := 1 << 10
	for k, v := range e.Annotations {
		size += len(k) + len(v)
	}
	if e.RequestObject != nil {
		size += len(e.RequestObject.Raw)
	}
	if e.ResponseObject != nil {
		size += len(e.ResponseObject.Raw)
	}
	return int64(size)
}

// Run writes batches until ctx ends, and then what is left. What cannot be written within lastWait after the end is
// counted as lost.
func (q *queue) Run(ctx context.Context) {
	for ctx.Err() == nil {
		q.flush(ctx, q.gather(ctx))
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
	defer cancel()
	for len(q.events) > 0 && last.Err() == nil {
		var batch []*auditv1.Event
		for len(batch) < q.opts.MaxSize && len(q.events) > 0 {
			batch = append(batch, <-q.events)
		}
		q.flush(last, batch)
	}
	if left := len(q.events); left > 0 {
		q.lost(left, last.Err())
	}
}

// gather waits for a batch: full, or as old as it may be. The timer starts with the first event, so a quiet server does
// not wake up for nothing.
func (q *queue) gather(ctx context.Context) (batch []*auditv1.Event) {
	var old <-chan time.Time
	for len(batch) < q.opts.MaxSize {
		select {
		case e := <-q.events:
			batch = append(batch, e)
			if old == nil && q.opts.MaxWait > 0 && len(batch) < q.opts.MaxSize {
				t := time.NewTimer(q.opts.MaxWait)
				defer t.Stop()
				old = t.C
			}
		case <-old:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// flush writes a batch. One batch is written at a time. A batch that cannot be written is lost, not queued once more:
// it would push out newer events while the target is down.
func (q *queue) flush(ctx context.Context, batch []*auditv1.Event) {
	if len(batch) == 0 {
		return
	}
	defer func() {
		for _, e := range batch {
			q.bytes.Add(-sizeOf(e))
		}
	}()
	if ctx.Err() != nil { // what was gathered when the end came
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWait)
		defer cancel()
	}
	if q.limit != nil {
		if err := q.limit.Wait(ctx); err != nil && ctx.Err() == nil {
			q.lost(len(batch), err)
			return
		}
	}
	if err := q.to.write(ctx, batch); err != nil {
		q.lost(len(batch), err)
	}
}
