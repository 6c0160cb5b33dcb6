package queueset

import "time"

// Request is one request's place in a Set. The caller sets the exported fields, and does not change them until the
// request is over.
type Request struct {
	// Hash is the hash of the request's flow.
	Hash uint64
	// Width is how many seats it takes while it runs, at least 1. The set lowers it to the most that the level may
	// have.
	Width int
	// Final is how many seats it takes for Extra after it ran, for work that it leaves behind; 0 is none.
	Final int
	Extra time.Duration
	// Owner belongs to the caller. The set does not look into it.
	Owner any

	arrived, started time.Duration
	state            state
	queue            *queue // nil in a set without queues
	// prev and next are the neighbours in line while it waits, and among those that run afterwards.
	prev, next *Request
}

type state int8

const (
	absent state = iota
	waits
	runs
	lingers // it has run and still takes its final seats
)

// Arrived is when it came.
func (r *Request) Arrived() time.Duration { return r.arrived }

// Started is when it began to run; see Running.
func (r *Request) Started() time.Duration { return r.started }

// Running reports whether it runs, or has run and still takes its final seats.
func (r *Request) Running() bool { return r.state == runs || r.state == lingers }

// QueueLength returns how many requests wait in its queue. It may be called only while the request waits: without a
// queue it panics.
func (r *Request) QueueLength() int { return r.queue.length }

// list is a chain of requests, linked by prev and next: a request is in one list at most. Removing one takes constant
// time wherever it stands.
type list struct{ head, tail *Request }

// push appends r, which is in no list.
func (l *list) push(r *Request) {
	r.prev, r.next = l.tail, nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
}

// remove takes out r, which must be in l.
func (l *list) remove(r *Request) {
	if r.prev == nil {
		l.head = r.next
	} else {
		r.prev.next = r.next
	}
	if r.next == nil {
		l.tail = r.prev
	} else {
		r.next.prev = r.prev
	}
	r.prev, r.next = nil, nil
}

// progress is the R at which the queue's next request would begin, with what those that run have taken so far.
func (q *queue) progress(now time.Duration) float64 {
	return q.start + float64(q.accruing)*now.Seconds() - q.begun
}

// begins counts a request of the queue that begins to run now, at r.started.
func (q *queue) begins(r *Request) {
	q.start += guess * float64(r.Width)
	q.begun += float64(r.Width) * r.started.Seconds()
	q.accruing += r.Width
}

// ends takes back what begins counted and adds what the request really took. It must see the same Width and started.
func (q *queue) ends(r *Request, now time.Duration) {
	q.start += float64(r.Width) * ((now - r.started).Seconds() - guess)
	q.begun -= float64(r.Width) * r.started.Seconds()
	q.accruing -= r.Width
}

// queue exists while it has requests, waiting or running.
type queue struct {
	index        int
	waiting      list
	length       int // of waiting
	waitingSeats int
	running      int // requests
	runningSeats int
	// start is the R at which the next request would begin if those that run were over already, each after a guess.
	start float64
	// begun adds up width times beginning, in seconds, of the requests that run, and accruing their widths: see
	// progress.
	begun    float64
	accruing int
	// at is the position among the queues with waiting requests, -1 without.
	at int
}
