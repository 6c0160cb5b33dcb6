package flowcontrol

import "sync"

// Shares bounds what is held for callers while they send or take their time, in bytes or in pieces: a total, of which one user
// may hold only a part. The nodes and the control plane have a total of their own.
type Shares struct {
	total, each int64

	mu     sync.Mutex
	others held
	system held
}

type held struct {
	all int64
	by  map[string]int64
}

// NewShares returns shares of total, of which one user may hold each.
func NewShares(total, each int64) *Shares {
	return &Shares{total: total, each: each, others: held{by: map[string]int64{}}, system: held{by: map[string]int64{}}}
}

// Take takes n for user if there is so much left; the caller gives it back by Give. What is larger than a user's whole part
// counts as that part, so that one such request at a time is possible.
func (s *Shares) Take(lane Lane, user string, n int64) bool {
	if lane == Exempt {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(lane)
	if n = min(n, s.each); h.all+n > s.total || h.by[user]+n > s.each {
		return false
	}
	h.all += n
	h.by[user] += n
	return true
}

// Give gives back what one Take took, with the same arguments.
func (s *Shares) Give(lane Lane, user string, n int64) {
	if lane == Exempt {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(lane)
	n = min(n, s.each)
	h.all -= n
	if h.by[user] -= n; h.by[user] <= 0 {
		delete(h.by, user)
	}
}

func (s *Shares) of(lane Lane) *held {
	if lane == Others {
		return &s.others
	}
	return &s.system
}
