// Package fairshare shares places among those who ask for them, so that no one of them takes all.
package fairshare

import (
	"slices"
	"sync"
	"time"
)

// Config says how many places there are.
type Config struct {
	// Most is the number of all places, Part the number that one source may have.
	Most, Part int
	// Young is how long a place is safe from a source that has fewer, and Old how long it is safe where nobody has more
	// than the others.
	Young, Old time.Duration
}

// Places bounds what is under way at once, in all and for each source, such as an address or a user. Nobody waits: a
// source gets a place at once or not at all.
//
// When all places are taken, a source that has fewer than another gets the oldest one of the source with the most.
// Where no source has more, it gets the oldest place of all, once that is old. An attacker with many addresses or names
// could otherwise keep everybody else out.
type Places[Source comparable] struct {
	cfg Config

	mu    sync.Mutex
	taken int
	by    map[Source][]*place // from the oldest on
}

// place is what something under way has until it leaves, or loses to another source.
type place struct {
	since time.Time
	end   func()
}

// New returns places that are all free.
func New[Source comparable](cfg Config) *Places[Source] {
	return &Places[Source]{cfg: cfg, by: map[Source][]*place{}}
}

// Take takes a place for a source until leave is called, and reports whether there is one. end ends what has the place,
// if it loses it to another source. end is called at most once, never after leave has returned, and with a lock held:
// it must not wait.
func (p *Places[Source]) Take(source Source, end func()) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	own := len(p.by[source])
	if own >= p.cfg.Part || p.taken >= p.cfg.Most && !p.makeRoom(own) {
		return nil, false
	}
	taken := &place{since: time.Now(), end: end}
	p.by[source] = append(p.by[source], taken)
	p.taken++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.leave(source, taken)
	}, true
}

// makeRoom ends the oldest place of the source with the most, for a source that has own places, or the oldest of all if
// no source has more than it would have then: two sources must not take young places from each other for ever. The
// caller holds mu.
func (p *Places[Source]) makeRoom(own int) bool {
	var source Source
	most := own + 1
	for s, places := range p.by {
		if len(places) > most {
			source, most = s, len(places)
		}
	}
	safe := p.cfg.Young
	if most == own+1 {
		safe = p.cfg.Old
		var since time.Time
		for s, places := range p.by {
			if since.IsZero() || places[0].since.Before(since) {
				source, since = s, places[0].since
			}
		}
	}
	oldest := p.by[source][0]
	if time.Since(oldest.since) < safe {
		return false
	}
	p.leave(source, oldest)
	oldest.end()
	return true
}

// leave frees a place, unless it was lost before. The caller holds mu.
func (p *Places[Source]) leave(source Source, left *place) {
	i := slices.Index(p.by[source], left)
	if i < 0 {
		return
	}
	p.taken--
	if p.by[source] = slices.Delete(p.by[source], i, i+1); len(p.by[source]) == 0 {
		delete(p.by, source)
	}
}
