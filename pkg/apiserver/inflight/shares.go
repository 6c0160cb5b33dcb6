package inflight

import (
	"sync"
	"time"

	"bonsai/pkg/apiserver/request"
)

// CallerOf returns the caller for whose share a user counts: the user, and for service accounts their namespace.
// Whoever may create one account there may create any number, and would have as many shares.
func CallerOf(user *request.User) string {
	if user == nil {
		return ""
	}
	if ns, _, ok := request.ServiceAccount(user.Name); ok {
		return request.ServiceAccountPrefix + ns
	}
	return user.Name
}

// Shares bounds what is held for callers while they send or take their time, in bytes or in pieces. One caller may hold
// only a part of the total. The nodes and the control plane have a total of their own.
//
// Where the total is full, whoever holds less than the one who holds most gets room: of that one, the slowest holding
// ends. Callers that an attacker can multiply would else keep all others out for as long as they like.
type Shares struct {
	total, each int64
	// patience is the age from which a holding also ends for the same caller's next one, or for that of a caller who
	// holds as much; 0: never.
	patience time.Duration

	mu     sync.Mutex
	others held
	system held
}

type held struct {
	all int64
	by  map[string]*part
}

// part is what one caller holds. Its holdings are linked from the oldest on.
type part struct {
	n              int64
	oldest, newest *Holding
}

// Holding is what one request holds of Shares. A nil one holds nothing.
type Holding struct {
	shares *Shares
	in     *held
	caller string
	end    func()

	// The rest is guarded by shares.mu.
	n           int64
	since       time.Time
	ended       bool
	older, more *Holding // in the list of its part
}

// NewShares returns shares of total; one caller may hold at most each. patience is 0 if a holding ends only for callers
// that hold less.
func NewShares(total, each int64, patience time.Duration) *Shares {
	return &Shares{total: total, each: each, patience: patience, others: held{by: map[string]*part{}},
		system: held{by: map[string]*part{}}}
}

// Hold begins a holding of nothing yet, whose owner calls Give at last. end ends the request, and is called at most
// once, never after Give and with a lock held: it must not wait. nil is for a holding that does not end for others.
// Requests of the lane Exempt hold nothing and are not counted.
func (s *Shares) Hold(lane Lane, caller string, end func()) *Holding {
	if lane == Exempt {
		return nil
	}
	in := &s.system
	if lane == Others {
		in = &s.others
	}
	return &Holding{shares: s, in: in, caller: caller, end: end}
}

// Take takes n more and reports whether there is room. A holding that is larger than a caller's whole part counts as
// that part, so that one such request at a time is possible. It never waits. After false the request is refused or
// ends; what it held before stays until Give.
func (h *Holding) Take(n int64) bool {
	if h == nil {
		return true
	}
	s := h.shares
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.each-h.n)
	if h.ended || !s.makeRoom(h, n) {
		return false
	}
	p := h.in.by[h.caller]
	if p == nil {
		p = &part{}
		h.in.by[h.caller] = p
	}
	if h.n == 0 && n > 0 {
		h.since = time.Now()
		p.add(h)
	}
	h.n, p.n, h.in.all = h.n+n, p.n+n, h.in.all+n
	return true
}

// Give gives back all that was taken. It may be called after the holding was ended for another one, and changes nothing
// then.
func (h *Holding) Give() {
	if h == nil {
		return
	}
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	h.drop()
}

// Ended reports whether the holding was ended for another one.
func (h *Holding) Ended() bool {
	if h == nil {
		return false
	}
	h.shares.mu.Lock()
	defer h.shares.mu.Unlock()
	return h.ended
}

// drop takes the holding out of its part. The caller holds shares.mu.
func (h *Holding) drop() {
	p := h.in.by[h.caller]
	if h.n == 0 || p == nil {
		return
	}
	p.remove(h)
	p.n -= h.n
	h.in.all -= h.n
	h.n = 0
	if p.n == 0 {
		delete(h.in.by, h.caller)
	}
}

// makeRoom reports whether h may take n more, after it has ended what must make room for it. The caller holds mu. Each
// round ends one holding and counts its room as free at once, although its request may take a moment to stop. So the
// memory that is really in use can pass the total for that moment. The loop ends because each round has one holding
// less.
func (s *Shares) makeRoom(h *Holding, n int64) bool {
	for {
		own := h.in.by[h.caller]
		wants := n
		if own != nil {
			wants += own.n
		}
		var victim *Holding
		switch {
		case wants > s.each:
			if s.patience > 0 {
				victim = own.slowest(h, s.patience)
			}
		case h.in.all+n > s.total:
			if most := h.in.heaviest(); most != nil && most.n > wants {
				victim = most.slowest(h, 0)
			} else if s.patience > 0 {
				for _, p := range h.in.by {
					victim = slower(victim, p.slowest(h, s.patience), time.Now())
				}
			}
		default:
			return true
		}
		if victim == nil {
			return false
		}
		victim.drop()
		victim.ended = true
		victim.end()
	}
}

// heaviest is the part of the caller who holds most. It looks at each caller with a holding, and only when the total is
// full.
func (in *held) heaviest() (most *part) {
	for _, p := range in.by {
		if most == nil || p.n > most.n {
			most = p
		}
	}
	return most
}

// slowest returns the holding other than but that may end, is at least that old and has grown least in its time; nil:
// there is none. The list is sorted by age, so the first one that is too young ends the search.
func (p *part) slowest(but *Holding, age time.Duration) (found *Holding) {
	if p == nil {
		return nil
	}
	now := time.Now()
	for h := p.oldest; h != nil; h = h.more {
		if now.Sub(h.since) < age {
			break
		}
		if h != but && h.end != nil {
			found = slower(found, h, now)
		}
	}
	return found
}

// slower returns the one of two that has grown less in its time; either may be nil. It compares a.n/age(a) with
// b.n/age(b), multiplied out, so that an age of zero divides nothing.
func slower(a, b *Holding, now time.Time) *Holding {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if float64(b.n)*now.Sub(a.since).Seconds() < float64(a.n)*now.Sub(b.since).Seconds() {
		return b
	}
	return a
}

// add appends a holding. Holdings are added in the order of their since, all under the lock, so the list stays sorted.
func (p *part) add(h *Holding) {
	h.older = p.newest
	if p.newest == nil {
		p.oldest = h
	} else {
		p.newest.more = h
	}
	p.newest = h
}

func (p *part) remove(h *Holding) {
	if h.older == nil {
		p.oldest = h.more
	} else {
		h.older.more = h.more
	}
	if h.more == nil {
		p.newest = h.older
	} else {
		h.more.older = h.older
	}
	h.older, h.more = nil, nil
}
