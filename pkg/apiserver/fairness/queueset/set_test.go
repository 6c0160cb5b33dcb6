package queueset

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// world drives a Set through a random history, and knows in the plainest way what must be true of it.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	set    *Set
	now    time.Duration
	cfg    Config
	limit  int
	widest int // the limit may have been higher when the last one began to run

	waiting, running, lingering map[*Request]bool
	began, over                 int
	seats                       map[*Request]int
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 1)), waiting: map[*Request]bool{}, running: map[*Request]bool{},
		lingering: map[*Request]bool{}, seats: map[*Request]int{}}
	w.cfg, w.limit = w.config(), w.rand.IntN(12)
	w.set = New(w.cfg, w.limit, 0, w.started)
	return w
}

func (w *world) config() Config {
	if w.rand.IntN(5) == 0 {
		return Config{}
	}
	queues := 1 + w.rand.IntN(12)
	return Config{Queues: queues, HandSize: 1 + w.rand.IntN(min(queues, MaxHand)), QueueLength: 1 + w.rand.IntN(5)}
}

func (w *world) started(r *Request) {
	if !w.waiting[r] {
		w.t.Fatal("a request was started that does not wait")
	}
	delete(w.waiting, r)
	w.runs(r)
}

func (w *world) runs(r *Request) {
	taken := 0
	for _, n := range w.seats {
		taken += n
	}
	if w.limit == 0 || taken > 0 && taken+r.Width > w.limit {
		w.t.Fatalf("a request of %d began while %d of %d seats were taken", r.Width, taken, w.limit)
	}
	w.running[r], w.seats[r] = true, r.Width
}

func (w *world) any(of map[*Request]bool) *Request {
	var all []*Request
	for r := range of {
		all = append(all, r)
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b *Request) int { return cmp.Compare(a.Owner.(int), b.Owner.(int)) })
	return all[w.rand.IntN(len(all))]
}

func (w *world) step(i int) {
	w.now += time.Duration(w.rand.IntN(int(20 * time.Millisecond)))
	switch w.rand.IntN(12) {
	case 0:
		if r := w.any(w.waiting); r != nil {
			delete(w.waiting, r)
			if !w.set.Leave(w.now, r) {
				w.t.Fatal("a request that waits could not leave")
			}
			w.over++
		}
		if r := w.any(w.running); r != nil && w.set.Leave(w.now, r) {
			w.t.Fatal("a request that runs left the line")
		}
	case 1:
		w.limit = w.rand.IntN(12)
		w.set.SetLimit(w.now, w.limit)
	case 2:
		w.cfg = w.config()
		w.set.Configure(w.now, w.cfg)
	case 3:
		if r := w.any(w.lingering); r != nil {
			delete(w.lingering, r)
			delete(w.seats, r)
			w.over++
			w.set.Release(w.now, r)
		}
	case 4, 5, 6:
		if r := w.any(w.running); r != nil {
			delete(w.running, r)
			if lingers := r.Final > 0 && r.Extra > 0; lingers {
				w.lingering[r], w.seats[r] = true, r.Final
			} else {
				delete(w.seats, r)
				w.over++
			}
			if done := w.set.Finish(w.now, r); done == w.lingering[r] {
				w.t.Fatalf("finished: %v", done)
			}
		}
	default:
		r := &Request{Hash: w.rand.Uint64N(6) * 0x9e3779b97f4a7c15, Width: 1 + w.rand.IntN(4), Owner: i}
		if w.rand.IntN(4) == 0 {
			r.Final, r.Extra = 1+w.rand.IntN(3), time.Millisecond
		}
		w.began++
		// Should it have to wait, it may only be started later; told Run, it runs already.
		switch w.set.Arrive(w.now, r) {
		case Run:
			w.runs(r)
		case Wait:
			w.waiting[r] = true
		default:
			w.over++
		}
	}
}

// check: nothing is lost, and nobody waits who could run.
func (w *world) check() {
	s := w.set
	seats := 0
	for _, n := range w.seats {
		seats += n
	}
	if s.Seats() != seats || s.Waiting() != len(w.waiting) || s.Executing() != len(w.running)+len(w.lingering) {
		w.t.Fatalf("seats %d, waiting %d, executing %d; want %d, %d, %d", s.Seats(), s.Waiting(), s.Executing(), seats,
			len(w.waiting), len(w.running)+len(w.lingering))
	}
	if w.began != w.over+s.Waiting()+s.Executing() {
		w.t.Fatalf("%d requests came, %d are over, %d wait, %d run", w.began, w.over, s.Waiting(), s.Executing())
	}
	if s.Waiting() > 0 && w.limit > 0 && s.now == w.now {
		if seats == 0 {
			w.t.Fatalf("%d requests wait while nothing runs", s.Waiting())
		}
		if next := s.next().waiting.head; seats+next.Width <= w.limit {
			w.t.Fatalf("the next request of %d waits while %d of %d seats are taken", next.Width, seats, w.limit)
		}
	}
	found := 0
	s.Requests(func(r *Request, queue, place int) bool {
		found++
		if (place >= 0) != w.waiting[r] || r.Running() == w.waiting[r] {
			w.t.Fatalf("a request is shown at place %d", place)
		}
		return true
	})
	if found != s.Waiting()+s.Executing() {
		w.t.Fatalf("%d requests are shown", found)
	}
	if s.Waiting()+s.Executing() == 0 && s.Active() != 0 {
		w.t.Fatalf("%d queues are kept without requests", s.Active())
	}
}

func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		w := newWorld(t, seed)
		for i := range 400 {
			w.step(i)
			w.check()
		}
	}
}

// served runs flows that always have backlog requests waiting, on limit seats, for a second, and returns the
// seat-seconds that each flow has had. A request of flow i takes took[i] seats and lasts lasts[i].
func served(t *testing.T, cfg Config, limit, backlog int, width []int, lasts []time.Duration) []float64 {
	t.Helper()
	type end struct {
		at   time.Duration
		r    *Request
		flow int
	}
	var ends []end
	got, now := make([]float64, len(width)), time.Duration(0)
	begin := func(r *Request) {
		flow := r.Owner.(int)
		ends = append(ends, end{now + lasts[flow], r, flow})
	}
	s := New(cfg, limit, 0, begin)
	add := func(flow int) {
		r := &Request{Hash: uint64(flow+1) * 0x9e3779b97f4a7c15 >> 3, Width: width[flow], Owner: flow}
		switch s.Arrive(now, r) {
		case Run:
			begin(r)
		case QueueFull, NoSeat:
			t.Fatalf("flow %d was refused", flow)
		}
	}
	for flow := range width {
		for range backlog {
			add(flow)
		}
	}
	for now < time.Second {
		i := 0
		for j := range ends {
			if ends[j].at < ends[i].at {
				i = j
			}
		}
		e := ends[i]
		ends = slices.Delete(ends, i, i+1)
		now = e.at
		got[e.flow] += float64(width[e.flow]) * lasts[e.flow].Seconds()
		s.Finish(now, e.r)
		add(e.flow)
	}
	return got
}

// Flows that want more than there is get the same, whatever the width of their requests and however long they last. A
// queue of its own for each is what most flows have.
func TestFlowsAreServedAlike(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width []int
		lasts []time.Duration
	}{
		"the same": {[]int{1, 1, 1}, []time.Duration{5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond}},
		"longer": {[]int{1, 1, 1},
			[]time.Duration{2 * time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}},
		"wider": {[]int{1, 2, 4}, []time.Duration{5 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond}},
		"both": {[]int{4, 1, 2},
			[]time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 7 * time.Millisecond}},
	} {
		got := served(t, Config{Queues: 128, HandSize: 1, QueueLength: 50}, 8, 40, c.width, c.lasts)
		if least, most := slices.Min(got), slices.Max(got); least < 0.8*most {
			t.Errorf("%s: seat-seconds of the flows: %.2f", name, got)
		}
	}
}

// A flow that asks for little is not starved by elephants that keep all their queues full: each of its requests comes
// next or nearly so.
func TestMouseAmongElephants(t *testing.T) {
	t.Parallel()
	const limit, lasts = 4, 10 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 2))
	var running []*Request
	s := New(Config{Queues: 128, HandSize: 6, QueueLength: 50}, limit, 0, func(r *Request) {
		running = append(running, r)
	})
	arrive := func(now time.Duration, r *Request) {
		if s.Arrive(now, r) == Run {
			running = append(running, r)
		}
	}
	elephants := []uint64{random.Uint64(), random.Uint64(), random.Uint64()}
	now := time.Duration(0)
	var mouse *Request
	worst := time.Duration(0)
	for tick := range 2000 {
		for _, hash := range elephants {
			for range 20 {
				arrive(now, &Request{Hash: hash, Width: 1})
			}
		}
		if mouse == nil && tick%5 == 0 {
			mouse = &Request{Hash: 0x1234567890abcdef, Width: 1}
			arrive(now, mouse)
		}
		if s.Waiting() < 100 && tick > 10 {
			t.Fatalf("only %d wait", s.Waiting())
		}
		now += lasts / limit
		oldest := running[0]
		running = running[1:]
		s.Finish(now, oldest)
		if mouse != nil && mouse.Started() > 0 {
			worst = max(worst, mouse.Started()-mouse.Arrived())
			mouse = nil
		}
	}
	if worst > 5*lasts || worst == 0 {
		t.Errorf("a mouse waited %v among requests of %v", worst, lasts)
	}
}

// A hand has no card twice, and each card is as likely as any other.
func TestDeal(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ deck, size int }{{1, 1}, {8, 8}, {16, 15}, {64, 6}, {128, 6}} {
		times := make([]int, c.deck)
		const hands = 20000
		for range hands {
			h := hand{hash: random.Uint64() >> 2, deck: c.deck}
			var cards []int
			for range c.size {
				card := h.deal()
				cards = append(cards, card)
				times[card]++
			}
			if slices.Sort(cards); len(slices.Compact(cards)) != c.size {
				t.Fatalf("a hand of %d of %d: %v", c.size, c.deck, cards)
			}
		}
		want := float64(hands*c.size) / float64(c.deck)
		for card, n := range times {
			if float64(n) < 0.8*want || float64(n) > 1.2*want {
				t.Errorf("%d of %d: card %d was dealt %d times, want about %.0f", c.size, c.deck, card, n, want)
			}
		}
	}
}

// What was asked for is measured over time, and forgotten with the period.
func TestDemand(t *testing.T) {
	t.Parallel()
	s := New(Config{Queues: 1, HandSize: 1, QueueLength: 10}, 2, 0, func(*Request) {})
	all := []*Request{{Width: 2}, {Width: 2}}
	for _, r := range all {
		s.Arrive(time.Second, r)
	}
	s.Finish(2*time.Second, all[0])
	s.Finish(3*time.Second, all[1])
	if d := fmt.Sprint(s.Demand(4 * time.Second)); d != "{4 1.5 1.6583123951777}" {
		t.Errorf("demand: %s", d)
	}
	if d := s.Demand(5 * time.Second); d != (Demand{}) {
		t.Errorf("demand of a quiet period: %v", d)
	}
}

func BenchmarkUncontended(b *testing.B) {
	s := New(Config{Queues: 128, HandSize: 6, QueueLength: 50}, 49, 0, func(*Request) {})
	b.ReportAllocs()
	now := time.Duration(0)
	for b.Loop() {
		r := Request{Hash: uint64(now) * 0x9e3779b97f4a7c15 >> 3, Width: 1}
		s.Arrive(now, &r)
		now += time.Microsecond
		s.Finish(now, &r)
	}
}
