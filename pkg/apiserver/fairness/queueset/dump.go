package queueset

// Queue is a queue as it is shown.
type Queue struct {
	Index, Waiting, Executing, Seats, WaitingSeats int
	// NextR is the R at which its next request would begin.
	NextR float64
	// Work is what the requests that wait are thought to take, in seat-seconds.
	Work float64
}

// R is the meter of progress, in seat-seconds.
func (s *Set) R() float64 { return s.r }

// Active is how many queues have requests.
func (s *Set) Active() int { return len(s.queues) }

// Queue is the one of that index; one without requests is empty.
func (s *Set) Queue(index int) Queue {
	out := Queue{Index: index}
	if q := s.queues[index]; q != nil {
		out = Queue{Index: index, Waiting: q.length, Executing: q.running, Seats: q.runningSeats,
			WaitingSeats: q.waitingSeats, NextR: q.start, Work: guess * float64(q.waitingSeats)}
	}
	return out
}

// Queues is how many queues there are.
func (s *Set) Queues() int { return s.cfg.Queues }

// Requests calls yield with each request that waits, with its queue and its place there, from 0, and then with those
// that run, for which the place, and without queues the queue, too, is -1. It ends when yield returns false.
func (s *Set) Requests(yield func(r *Request, queue, place int) bool) {
	for _, q := range s.line {
		place := 0
		for r := q.waiting.head; r != nil; r = r.next {
			if !yield(r, q.index, place) {
				return
			}
			place++
		}
	}
	for r := s.running.head; r != nil; r = r.next {
		index := -1
		if r.queue != nil {
			index = r.queue.index
		}
		if !yield(r, index, -1) {
			return
		}
	}
}
