package story

import (
	"cmp"
	"slices"
	"time"

	"bonsai/api/traces"
)

// Summary is where the time of many startups goes.
type Summary struct {
	// Total is of the whole startups.
	Total Spread `json:"total"`
	// Steps are by their share, the largest first. Gaps have the name of what was waited for.
	Steps []Spread `json:"steps"`
	// Slowest are the objects whose startups took longest.
	Slowest []Slow `json:"slowest,omitempty"`
	// Unready is how many objects have not become Ready, or were deleted before. They are counted nowhere else.
	Unready int `json:"unready,omitempty"`
	// Lapsed is how many of the startups that count are of objects that are not Ready now.
	Lapsed int `json:"lapsed,omitempty"`
	// NotReady are some of the objects that are there and not Ready now, and MoreNotReady is how many others there are.
	NotReady     []NotReady `json:"notReady,omitempty"`
	MoreNotReady int        `json:"moreNotReady,omitempty"`
	// scattered is that some of the others are in another namespace than the first one that is named.
	scattered bool
	// Unknown is how many are Ready now, and nobody knows since when. They are counted nowhere else.
	Unknown int `json:"unknown,omitempty"`
	// Ended is how many have ended, so that nobody knows when they were Ready.
	Ended int `json:"ended,omitempty"`
	// Gone is how many of all these objects are no longer there.
	Gone int `json:"gone,omitempty"`
}

// Spread is how long one step takes in many startups.
type Spread struct {
	Name  string `json:"name"`
	Gap   bool   `json:"gap,omitempty"`
	Count int    `json:"count"`
	// The percentiles are nearest ranks: times that were measured, not times between two of them.
	P50 time.Duration `json:"p50"`
	P90 time.Duration `json:"p90"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
	// Share is the step's part of all critical paths together, from 0 to 1: what a startup would gain without it.
	Share float64 `json:"share"`
}

// Slow is one slow startup.
type Slow struct {
	Object   traces.Object `json:"object"`
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration"`
	// Longest is the step with the largest part of the critical path.
	Longest  string        `json:"longest"`
	LongTime time.Duration `json:"longTime"`
}

// Summarize summarizes the startups that are done, with the slowest ones.
func Summarize(stories []*Story, slowest int) Summary {
	var (
		out   Summary
		total collected
		order []string
		steps = map[string]*collected{}
		all   time.Duration
	)
	get := func(name string, gap bool) *collected {
		c, ok := steps[name]
		if !ok {
			c = &collected{gap: gap}
			steps[name], order = c, append(order, name)
		}
		return c
	}
	for _, s := range stories {
		if s.Gone {
			out.Gone++
		}
		if s.Lapsed() {
			out.Lapsed++
		}
		out.note(s)
		p := s.Phase(Startup)
		switch {
		case s.Unready() && s.Now != nil && s.Now.Ready:
			out.Unknown++
			continue
		case s.Unready():
			out.Unready++
			continue
		case p.Ended != "":
			out.Ended++
			continue
		}
		total.times = append(total.times, p.Duration())
		all += p.Duration()
		for name, took := range took(p) {
			c := get(name, false)
			c.times = append(c.times, took)
		}
		gaps := map[string]time.Duration{}
		for _, seg := range p.Path {
			if seg.Gap {
				gaps[seg.Name] += seg.Duration
			} else {
				get(seg.Step.Key(), false).onPath += seg.Duration
			}
		}
		for name, took := range gaps {
			c := get(name, true)
			c.times, c.onPath = append(c.times, took), c.onPath+took
		}
		out.Slowest = append(out.Slowest, slow(s, p))
	}
	total.onPath = all
	out.Total = total.spread("startup", all)
	for _, name := range order {
		out.Steps = append(out.Steps, steps[name].spread(name, all))
	}
	slices.SortStableFunc(out.Steps, func(a, b Spread) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(b.P50, a.P50), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(out.Slowest, func(a, b Slow) int {
		return cmp.Or(cmp.Compare(b.Duration, a.Duration), cmp.Compare(a.Object.Name, b.Object.Name))
	})
	out.Slowest = out.Slowest[:min(len(out.Slowest), max(slowest, 0))]
	return out
}

// Rows returns the steps that are worth a row each: at most so many, and those alone that have a hundredth of the time.
// more and share are how many others there are, and what they have together. One alone is no less a row.
func (s *Summary) Rows(most int) (rows []Spread, more int, share float64) {
	n := min(len(s.Steps), most)
	for n > 0 && s.Steps[n-1].Share < small {
		n--
	}
	if n == len(s.Steps)-1 && n < most {
		n++
	}
	for _, other := range s.Steps[n:] {
		share += other.Share
	}
	return s.Steps[:n], len(s.Steps) - n, share
}

// More says what Rows leaves out: "17 more steps, 3% in all".
func More(n int, share float64) string {
	return plural(n, "more step") + ", " + Percent(share) + " in all"
}

// collected are the times of one step.
type collected struct {
	gap    bool
	times  []time.Duration
	onPath time.Duration
}

func (c *collected) spread(name string, all time.Duration) Spread {
	slices.Sort(c.times)
	s := Spread{Name: name, Gap: c.gap, Count: len(c.times), P50: percentile(c.times, 50), P90: percentile(c.times, 90),
		P99: percentile(c.times, 99), Max: percentile(c.times, 100)}
	if all > 0 {
		s.Share = float64(c.onPath) / float64(all)
	}
	return s
}

// percentile returns the smallest of sorted times that at least p percent do not exceed; 0 without any.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

// took returns for each name how long steps of it ran during a startup: a time in which two containers start counts
// once.
func took(p *Phase) map[string]time.Duration {
	type interval struct{ from, to time.Time }
	by := map[string][]interval{}
	var add func([]*Step)
	add = func(steps []*Step) {
		for _, s := range steps {
			from, to := latest(s.Start, p.Start), s.End()
			if to.After(p.End) {
				to = p.End
			}
			if !to.Before(from) {
				by[s.Key()] = append(by[s.Key()], interval{from, to})
			}
			add(s.Steps)
		}
	}
	add(p.Steps)
	out := make(map[string]time.Duration, len(by))
	for name, all := range by {
		slices.SortFunc(all, func(a, b interval) int { return a.from.Compare(b.from) })
		var sum time.Duration
		end := all[0].from
		for _, i := range all {
			if from := latest(i.from, end); i.to.After(from) {
				sum += i.to.Sub(from)
				end = i.to
			}
		}
		out[name] = sum
	}
	return out
}

// slow describes a startup by its largest part.
func slow(s *Story, p *Phase) Slow {
	out := Slow{Object: s.Object, Start: p.Start, Duration: p.Duration()}
	for _, part := range Parts(p) {
		if part.Duration > out.LongTime {
			out.Longest, out.LongTime = part.Name, part.Duration
		}
	}
	return out
}

// Parts returns a critical path with the segments of one step joined, in the order in which they begin first. Those
// that take no time are left out.
func Parts(p *Phase) []Segment {
	var out []Segment
	for _, s := range p.Path {
		if s.Duration <= 0 {
			continue
		}
		i := slices.IndexFunc(out, func(o Segment) bool { return o.Step == s.Step && o.Name == s.Name })
		if i < 0 {
			out = append(out, s)
			continue
		}
		out[i].Duration += s.Duration
		out[i].Share += s.Share
	}
	return out
}

// Main returns the parts of a path that are worth a line each: those with at least that share, and no more than a
// picture has lines. others and rest are how many parts are left out, and how long they are together.
func Main(parts []Segment, least float64) (kept []Segment, others int, rest time.Duration) {
	if len(parts) > maxLines {
		shares := make([]float64, len(parts))
		for i := range parts {
			shares[i] = parts[i].Share
		}
		slices.Sort(shares)
		least = max(least, shares[len(shares)-maxLines-1]*1.0001)
	}
	for _, s := range parts {
		if s.Share < least {
			others, rest = others+1, rest+s.Duration
			continue
		}
		kept = append(kept, s)
	}
	return kept, others, rest
}
