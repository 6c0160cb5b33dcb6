package story

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Segment is a piece of a critical path: a time in which one step determined when the phase would end, or in which none
// did.
type Segment struct {
	// Name is the step's, or says what was waited for.
	Name      string        `json:"name"`
	Component string        `json:"component,omitempty"`
	Start     time.Time     `json:"start"`
	Duration  time.Duration `json:"duration"`
	// Share is the segment's part of the phase, from 0 to 1.
	Share float64 `json:"share"`
	// Step is the step, nil for a gap, which is a time between steps.
	Step *Step `json:"-"`
	Gap  bool  `json:"gap,omitempty"`
}

// End is when the segment ended.
func (s *Segment) End() time.Time { return s.Start.Add(s.Duration) }

// criticalPath returns the steps that determine when p ended, and sets their OnPath.
//
// It walks backwards from the end. Whatever ended last before a moment is what the rest had to wait for: if it had
// ended earlier, so would the rest. It therefore has the time up to its own end, and the walk continues at its start.
// Inside a step the steps below it are walked in the same way. What ends after the phase cannot have delayed it.
//
// A time before which nothing ended is a gap, unless steps were running then: nothing waited for their end, but they
// are the best answer to what happened meanwhile. The segments cover the phase exactly once, so that their shares add
// up to one.
func criticalPath(p *Phase) []Segment {
	w := walk{}
	w.cover(nil, p.Steps, p.Start, p.End)
	slices.Reverse(w.out)
	joined := w.out[:0]
	for _, s := range w.out {
		if n := len(joined); n > 0 && joined[n-1].Step == s.Step && joined[n-1].End().Equal(s.Start) {
			joined[n-1].Duration += s.Duration
			continue
		}
		joined = append(joined, s)
	}
	ofPods := slices.ContainsFunc(p.Steps, func(s *Step) bool { return s.Component == pods })
	for i := range joined {
		s := &joined[i]
		s.Share = p.Share(s.Duration)
		if s.Gap = s.Step == nil; s.Gap {
			s.Name = gapName(neighbour(joined, i, -1), neighbour(joined, i, +1), p)
			if ofPods && i > 0 && i < len(joined)-1 {
				s.Name = "no pod was starting"
				if p.Finite {
					s.Name = "no pod was running"
				}
			}
			continue
		}
		s.Name, s.Component = s.Step.Name, s.Step.Component
		switch {
		case s.Component != pods:
		case s.Step.Unready:
			s.Name += ", not Ready"
		case len(s.Step.Steps) > 0:
			s.Name += ", between its steps"
		}
	}
	own := map[*Step]time.Duration{}
	for i := range joined {
		own[joined[i].Step] += joined[i].Duration
	}
	for _, s := range p.Steps {
		sum(s, own)
	}
	return joined
}

// neighbour is the step of the segment beside the i-th, nil if there is none.
func neighbour(path []Segment, i, by int) *Step {
	if i+by < 0 || i+by >= len(path) {
		return nil
	}
	return path[i+by].Step
}

// sum sets OnPath of s and of the steps inside it, by what each has of the path itself.
func sum(s *Step, own map[*Step]time.Duration) time.Duration {
	s.OnPath = own[s]
	for _, inner := range s.Steps {
		s.OnPath += sum(inner, own)
	}
	return s.OnPath
}

// walk collects segments, the last one first.
type walk struct{ out []Segment }

func (w *walk) emit(s *Step, from, to time.Time) {
	if to.After(from) {
		w.out = append(w.out, Segment{Step: s, Start: from, Duration: to.Sub(from)})
	}
}

// cover adds the segments from from to to: those of steps, which are inside owner, and owner's own for the rest.
func (w *walk) cover(owner *Step, steps []*Step, from, to time.Time) {
	steps = byEnd(steps)
	for at := to; at.After(from); {
		ended := lastEnded(steps, from, at)
		free := from // since when nothing that ended explains the time
		if ended != nil {
			free = ended.End()
		}
		if !free.Before(at) { // the usual case: ended is what the rest waited for
			at = w.step(ended, latest(ended.Start, from), at)
			continue
		}
		if r := running(steps, at, to); r != nil {
			at = w.step(r, latest(r.Start, free), at)
			continue
		}
		if m := momentAt(steps, at); m != nil && at.Before(to) {
			w.out = append(w.out, Segment{Step: m, Start: at}) // what the gap was before
		}
		w.emit(owner, free, at)
		at = free
	}
}

// step adds the segments of s from from to to, and returns from.
func (w *walk) step(s *Step, from, to time.Time) time.Time {
	w.cover(s, s.Steps, from, to)
	return from
}

// byEnd returns steps by their end, of several the longest last.
func byEnd(steps []*Step) []*Step {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b *Step) int {
		return cmp.Or(a.End().Compare(b.End()), b.Start.Compare(a.Start))
	})
	return steps
}

// endedBy returns how many of the steps, which are by their end, have ended at a time.
func endedBy(steps []*Step, at time.Time) int {
	return sort.Search(len(steps), func(i int) bool { return steps[i].End().After(at) })
}

// lastEnded returns the step that ended last in (from, at], of several the longest; nil for none. It began before at,
// so that a walk that continues at its start comes to an end. The steps are by their end.
func lastEnded(steps []*Step, from, at time.Time) *Step {
	for i := endedBy(steps, at) - 1; i >= 0 && steps[i].End().After(from); i-- {
		if steps[i].Start.Before(at) {
			return steps[i]
		}
	}
	return nil
}

// momentAt returns a step without duration at a time, nil if there is none. The steps are by their end.
func momentAt(steps []*Step, at time.Time) *Step {
	for i := endedBy(steps, at) - 1; i >= 0 && steps[i].End().Equal(at); i-- {
		if steps[i].Duration == 0 {
			return steps[i]
		}
	}
	return nil
}

// running returns the step that was running before at and ended the soonest after it, but not after to; nil for none.
// The steps are by their end.
func running(steps []*Step, at, to time.Time) *Step {
	for i := endedBy(steps, at); i < len(steps) && !steps[i].End().After(to); i++ {
		if steps[i].Start.Before(at) {
			return steps[i]
		}
	}
	return nil
}
