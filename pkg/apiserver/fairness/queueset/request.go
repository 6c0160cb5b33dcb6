package queueset

import "time"

// Request is one request's place in a Set. The caller fills in what is exported and leaves it alone until the request
// is over.
type Request struct {
	// Hash is that of the flow.
	Hash uint64
	// Width is how many seats it takes while it runs, at least 1; it is cut to what the level may ever have.
	Width int
	// Final is how many seats it takes for Extra after it ran, for work that it leaves behind; 0 is none.
	Final int
	Extra time.Duration
	// Owner is the caller's.
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

// Arrived and Started are when it came and began to run.
func (r *Request) Arrived() time.Duration { return r.arrived }

// Started is when it began to run; see Running.
func (r *Request) Started() time.Duration { return r.started }

// Running reports whether it runs, or has run and keeps its final seats.
func (r *Request) Running() bool { return r.state == runs || r.state == lingers }

// QueueLength is how many wait in its queue, of one that waits.
func (r *Request) QueueLength() int { return r.queue.length }

// list is a chain of requests.
type list struct{ head, tail *Request }

func (l *list) push(r *Request) {
	r.prev, r.next = l.tail, nil
	if l.tail == nil {
		l.head = r
	} else {
		l.tail.next = r
	}
	l.tail = r
}

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

// begins and ends tell that a request of the queue runs, and that it has.
func (q *queue) begins(r *Request) {
	q.start += guess * float64(r.Width)
	q.begun += float64(r.Width) * r.started.Seconds()
	q.accruing += r.Width
}

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
