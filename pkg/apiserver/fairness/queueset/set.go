package queueset

import (
	"math"
	"time"
)

// guess is what a request is thought to take before it is known, in seconds: KEP-1040's 3 ms.
const guess = 0.003

// Config is how a level treats requests for which there is no seat.
type Config struct {
	// Queues is how many queues there are; 0: such requests are rejected.
	Queues int
	// HandSize is how many of them a flow is dealt: at most Queues and MaxHand.
	HandSize int
	// QueueLength is how many requests may wait in one of them.
	QueueLength int
}

// Decision is what becomes of a request that arrives.
type Decision int

// The decisions. A later call starts a request that has to wait.
const (
	Run Decision = iota
	Wait
	// QueueFull: too many wait in the queue that it belongs to.
	QueueFull
	// NoSeat: there is none, and nobody may wait.
	NoSeat
)

// Set is the seats and queues of a level. It is for one goroutine at a time. All times are since a fixed moment, and do
// not go back.
type Set struct {
	cfg   Config
	limit int
	// start is called with each request that had to wait, once it may run.
	start func(*Request)

	queues map[int]*queue // those that have requests
	line   []*queue       // of these, those in which some wait, in no order
	spare  []*queue
	last   int // the queue that was served last

	running      list
	executing    int // requests
	seats        int // taken
	waiting      int // requests
	waitingSeats int

	r     float64 // R, in seat-seconds
	now   time.Duration
	meter meter
}

// New returns a set with that many seats, at the time now. start is called, from within the other methods, for each
// request that had to wait and may run now.
func New(cfg Config, limit int, now time.Duration, start func(*Request)) *Set {
	return &Set{cfg: cfg, limit: limit, start: start, queues: map[int]*queue{}, now: now}
}

// Arrive takes a request in, or tells why not.
func (s *Set) Arrive(now time.Duration, r *Request) Decision {
	s.advance(now)
	r.Width = max(1, min(r.Width, s.limit))
	r.Final = min(r.Final, max(1, s.limit))
	r.arrived = now
	if s.cfg.Queues == 0 {
		s.dispatch(nil) // of those that wait since there were queues
		if !s.fits(r.Width) {
			return NoSeat
		}
		s.run(r)
		s.raise()
		return Run
	}
	q := s.choose(r.Hash)
	if q.length >= s.cfg.QueueLength {
		if s.dispatch(nil); q.length >= s.cfg.QueueLength {
			return QueueFull
		}
	}
	s.enqueue(q, r)
	s.raise()
	s.dispatch(r)
	if r.state == waits {
		return Wait
	}
	return Run
}

// Leave takes a request out that waits, and reports whether it did: it may run by now.
func (s *Set) Leave(now time.Duration, r *Request) bool {
	if r.state != waits {
		return false
	}
	s.advance(now)
	s.dequeue(r.queue, r)
	s.drop(r.queue)
	r.state, r.queue = absent, nil
	s.dispatch(nil) // it may have been the one for which seats were saved
	return true
}

// Finish tells that a request has run. If it has final seats, it takes these now, until Release; done reports whether
// it is over.
func (s *Set) Finish(now time.Duration, r *Request) (done bool) {
	s.advance(now)
	if r.queue != nil {
		r.queue.ends(r, now)
	}
	if r.Final > 0 && r.Extra > 0 {
		s.resize(r, r.Final-r.Width)
		r.state = lingers
		if r.queue != nil {
			r.queue.start += float64(r.Final) * r.Extra.Seconds()
		}
		s.raise()
		s.dispatch(nil)
		return false
	}
	s.end(r, r.Width)
	return true
}

// Release gives back the final seats of a request.
func (s *Set) Release(now time.Duration, r *Request) {
	s.advance(now)
	s.end(r, r.Final)
}

// SetLimit changes how many seats there are. Who has one keeps it.
func (s *Set) SetLimit(now time.Duration, limit int) {
	s.advance(now)
	s.limit = limit
	s.dispatch(nil)
}

// Configure changes the queues. Who waits goes on waiting where he is.
func (s *Set) Configure(now time.Duration, cfg Config) {
	s.advance(now)
	s.cfg = cfg
	s.dispatch(nil)
}

// Limit is how many seats there are, Seats how many are taken.
func (s *Set) Limit() int { return s.limit }

// Seats is how many seats are taken.
func (s *Set) Seats() int { return s.seats }

// Waiting and Executing are how many requests wait and run.
func (s *Set) Waiting() int { return s.waiting }

// Executing is how many requests run or keep final seats.
func (s *Set) Executing() int { return s.executing }

func (s *Set) demand() int { return s.seats + s.waitingSeats }

// advance lets the time pass.
func (s *Set) advance(now time.Duration) {
	seconds := (now - s.now).Seconds()
	if seconds <= 0 {
		return
	}
	s.now = now
	s.meter.pass(s.demand(), seconds)
	if busy := len(s.queues); busy > 0 {
		s.r += seconds * float64(min(s.limit, s.demand())) / float64(busy)
	}
}

// raise notes that more seats are asked for than before.
func (s *Set) raise() { s.meter.high = max(s.meter.high, s.demand()) }

// fits reports whether a request of that width may run now. One that is wider than what is left by shrinking limits
// runs alone.
func (s *Set) fits(width int) bool {
	return s.limit > 0 && (s.seats == 0 || s.seats+width <= s.limit)
}

// choose is the least loaded of the queues that a flow is dealt, made if it is not there.
func (s *Set) choose(hash uint64) *queue {
	hand := hand{hash: hash, deck: s.cfg.Queues}
	best, least := (*queue)(nil), math.MaxInt
	for range s.cfg.HandSize {
		index := hand.deal()
		q := s.queues[index]
		if q == nil {
			return s.newQueue(index)
		}
		if load := q.waitingSeats + q.runningSeats; load < least {
			best, least = q, load
		}
	}
	return best
}

func (s *Set) newQueue(index int) *queue {
	var q *queue
	if n := len(s.spare); n > 0 {
		q, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		q = &queue{}
	}
	*q = queue{index: index, start: s.r, at: -1}
	s.queues[index] = q
	return q
}

// maxSpare is how many queues without requests are kept to be used again.
const maxSpare = 64

// drop forgets a queue that has no requests any more: its past counts for nothing.
func (s *Set) drop(q *queue) {
	if q.length > 0 || q.running > 0 {
		return
	}
	delete(s.queues, q.index)
	if len(s.spare) < maxSpare {
		s.spare = append(s.spare, q)
	}
}

func (s *Set) enqueue(q *queue, r *Request) {
	if q.length == 0 {
		// What it could have had and did not want is no credit for later. It is, if it waited for seats.
		q.start += max(0, s.r-q.progress(s.now))
	}
	r.state, r.queue = waits, q
	q.waiting.push(r)
	q.length++
	q.waitingSeats += r.Width
	s.waiting++
	s.waitingSeats += r.Width
	if q.at < 0 {
		q.at = len(s.line)
		s.line = append(s.line, q)
	}
}

func (s *Set) dequeue(q *queue, r *Request) {
	q.waiting.remove(r)
	q.length--
	q.waitingSeats -= r.Width
	s.waiting--
	s.waitingSeats -= r.Width
	if q.length > 0 {
		return
	}
	n := len(s.line) - 1
	moved := s.line[n]
	s.line[q.at], moved.at = moved, q.at
	s.line[n] = nil
	s.line, q.at = s.line[:n], -1
}

// dispatch runs the next requests while there are seats. If there are too few for the next one, they are saved for it,
// so that wide requests do not starve. It does not call start for arriving, the request that Arrive is taking in:
// Arrive's result says that it runs.
func (s *Set) dispatch(arriving *Request) {
	for len(s.line) > 0 {
		q := s.next()
		r := q.waiting.head
		if !s.fits(r.Width) {
			return
		}
		s.dequeue(q, r)
		s.last = q.index
		s.run(r)
		if r != arriving {
			s.start(r)
		}
	}
}

// next is the queue whose first request would be over first, or of several the one that follows the last one round the
// table.
func (s *Set) next() *queue {
	best, earliest := (*queue)(nil), math.Inf(1)
	for _, q := range s.line {
		over := q.progress(s.now) + guess*float64(q.waiting.head.Width)
		if over < earliest || over == earliest && s.after(q) < s.after(best) {
			best, earliest = q, over
		}
	}
	return best
}

// after is how far behind the queue that was served last q comes.
func (s *Set) after(q *queue) int {
	if d := q.index - s.last; d > 0 {
		return d
	}
	return q.index - s.last + math.MaxInt32
}

func (s *Set) run(r *Request) {
	r.state, r.started = runs, s.now
	s.running.push(r)
	s.executing++
	s.seats += r.Width
	if q := r.queue; q != nil {
		q.running++
		q.runningSeats += r.Width
		q.begins(r)
	}
}

func (s *Set) resize(r *Request, by int) {
	s.seats += by
	if r.queue != nil {
		r.queue.runningSeats += by
	}
}

func (s *Set) end(r *Request, seats int) {
	s.running.remove(r)
	s.executing--
	s.resize(r, -seats)
	r.state = absent
	if q := r.queue; q != nil {
		q.running--
		r.queue = nil
		s.drop(q)
	}
	s.dispatch(nil)
}
