package story

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// zero is when the stories of tests begin.
func zero() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

// at makes a step from its first to its last second.
func at(name string, from, to float64, inner ...*Step) *Step {
	component, _, _ := strings.Cut(name, ".")
	start := zero().Add(time.Duration(from * float64(time.Second)))
	return &Step{Name: name, Component: component, Start: start,
		Duration: time.Duration((to - from) * float64(time.Second)), Steps: inner}
}

// TestCriticalPath: a path as "name seconds", a gap in parentheses.
func TestCriticalPath(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end   float64
		steps []*Step
		want  string
	}{
		"nothing":             {4, nil, "(no step is known) 4"},
		"one after the other": {3, []*Step{at("a", 0, 1), at("b", 1, 3)}, "a 1, b 2"},
		"a gap":               {4, []*Step{at("a", 0, 1), at("b", 2, 4)}, "a 1, (between a and b) 1, b 2"},
		"a gap at the end":    {4, []*Step{at("a", 0, 1)}, "a 1, (waiting to become Ready) 3"},
		"a gap at the start":  {4, []*Step{at("a", 1, 4)}, "(before a) 1, a 3"},
		"the slower of two":   {4, []*Step{at("a", 0, 1), at("b", 0, 3), at("c", 3, 4)}, "b 3, c 1"},
		"a chain beside": {4, []*Step{at("a", 0, 1), at("b", 1, 2), at("long", 0, 3), at("c", 3, 4)},
			"long 3, c 1"},
		"after the end":        {4, []*Step{at("a", 0, 4), at("late", 1, 6)}, "a 4"},
		"runs into another":    {4, []*Step{at("a", 0, 2), at("b", 1, 4)}, "a 1, b 3"},
		"runs behind a chain":  {4, []*Step{at("back", 0, 3.5), at("a", 0, 2), at("b", 2, 4)}, "a 2, b 2"},
		"runs in a gap":        {4, []*Step{at("back", 0, 3.5), at("a", 0, 1), at("b", 2, 4)}, "a 1, back 1, b 2"},
		"inside":               {4, []*Step{at("a", 0, 4, at("a.x", 1, 2), at("a.y", 2, 3))}, "a 1, a.x 1, a.y 1, a 1"},
		"inside, beside":       {4, []*Step{at("a", 0, 4, at("a.x", 0, 4), at("a.y", 0, 3))}, "a.x 4"},
		"inside, out of it":    {4, []*Step{at("a", 0, 2, at("a.x", 1, 3)), at("b", 2, 4)}, "a 2, b 2"},
		"a moment parts a gap": {4, []*Step{at("a", 0, 1), at("m", 2, 2), at("b", 3, 4)}, "a 1, (between a and m) 1, m 0, (between m and b) 1, b 1"},
		"to the kubelet": {4, []*Step{at("scheduler.bind", 0, 1), at("kubelet.admit", 2, 4)},
			"scheduler.bind 1, (waiting for the kubelet to see the pod) 1, kubelet.admit 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ordered(test.steps)
			p := &Phase{Name: Startup, Done: true, Start: zero(), Steps: test.steps,
				End: zero().Add(time.Duration(test.end * float64(time.Second)))}
			p.Path = criticalPath(p)
			var got []string
			for _, s := range p.Path {
				name := s.Name
				if s.Gap {
					name = "(" + name + ")"
				}
				got = append(got, fmt.Sprintf("%s %g", name, s.Duration.Seconds()))
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			whole(t, p)
		})
	}
}

// whole: a path covers its phase exactly once, and the parts of the steps add up to it.
func whole(t *testing.T, p *Phase) {
	t.Helper()
	next := p.Start
	var share float64
	for _, s := range p.Path {
		if !s.Start.Equal(next) || s.Duration < 0 {
			t.Errorf("the segment %s begins at %s, not at %s", s.Name, s.Start, next)
		}
		if s.Step != nil && (s.Start.Before(s.Step.Start) || s.End().After(s.Step.End())) {
			t.Errorf("the segment %s is outside its step", s.Name)
		}
		next = s.End()
		share += s.Share
	}
	if !next.Equal(p.End) && len(p.Path) > 0 {
		t.Errorf("the path ends at %s, not at %s", next, p.End)
	}
	if p.Duration() > 0 && (share < 0.999 || share > 1.001) {
		t.Errorf("the shares add up to %g", share)
	}
	var sum, gaps time.Duration
	for _, s := range p.Steps {
		sum += s.OnPath
	}
	for _, s := range p.Path {
		if s.Gap {
			gaps += s.Duration
		}
	}
	if sum+gaps != p.Duration() {
		t.Errorf("steps have %s and gaps %s of %s", sum, gaps, p.Duration())
	}
}

// work is a piece of a random program: a leaf that takes its time, or parts that run one after the other or beside one
// another.
type work struct {
	name     string
	beside   bool
	duration time.Duration
	parts    []*work
}

func random(r *rand.Rand, depth int, name string) *work {
	w := &work{name: name, beside: r.IntN(2) == 0}
	if depth == 0 || r.IntN(4) == 0 {
		w.duration = time.Duration(1 + r.Int64N(int64(time.Second)))
		return w
	}
	for i := range 1 + r.IntN(4) {
		w.parts = append(w.parts, random(r, depth-1, fmt.Sprintf("%s.%d", name, i)))
	}
	return w
}

// takes is how long the program runs: the sum of what is in a row, the longest of what is beside.
func (w *work) takes() time.Duration {
	d := w.duration
	for _, p := range w.parts {
		if took := p.takes(); w.beside {
			d = max(d, took)
		} else {
			d += took
		}
	}
	return d
}

// run executes the program from start on. It returns its step, and appends the leaves.
func (w *work) run(start time.Time, leaves *[]*Step) *Step {
	s := &Step{Name: w.name, Start: start, Duration: w.takes()}
	next := start
	for _, p := range w.parts {
		s.Steps = append(s.Steps, p.run(next, leaves))
		if !w.beside {
			next = next.Add(p.takes())
		}
	}
	if len(w.parts) == 0 {
		*leaves = append(*leaves, s)
	}
	return s
}

// leaves returns the leaves by name.
func (w *work) leaves(out map[string]*work) {
	if len(w.parts) == 0 {
		out[w.name] = w
	}
	for _, p := range w.parts {
		p.leaves(out)
	}
}

// TestCriticalPathOfPrograms: the oracle is the program itself. A leaf is on the critical path if, and only if, the
// program would be done earlier if the leaf were a nanosecond shorter. It is found both where the steps are a tree and
// where only the leaves are known.
func TestCriticalPathOfPrograms(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 38))
		program := random(r, 4, "w")
		total := program.takes()
		critical := map[string]bool{}
		byName := map[string]*work{}
		program.leaves(byName)
		for name, leaf := range byName {
			leaf.duration--
			critical[name] = program.takes() < total
			leaf.duration++
		}
		for _, flat := range []bool{false, true} {
			var leaves []*Step
			steps := []*Step{program.run(zero(), &leaves)}
			if flat {
				steps = leaves
			}
			r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
			ordered(steps)
			p := &Phase{Name: Startup, Done: true, Start: zero(), End: zero().Add(total), Steps: steps}
			p.Path = criticalPath(p)
			whole(t, p)
			for _, l := range leaves {
				if want := critical[l.Name]; want != (l.OnPath > 0) || want && l.OnPath != l.Duration {
					t.Errorf("seed %d, flat %t: %s has %s of its %s on the path, critical: %t", seed, flat, l.Name,
						l.OnPath, l.Duration, want)
				}
			}
		}
	}
}

// TestCriticalPathOfAnything: of any steps, however they overlap, the path covers the phase exactly once.
func TestCriticalPathOfAnything(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 39))
		var any func(depth int) []*Step
		any = func(depth int) (out []*Step) {
			for range r.IntN(5) {
				from := float64(r.IntN(20))
				s := at("s", from, from+float64(r.IntN(10)))
				if depth > 0 {
					s.Steps = any(depth - 1)
				}
				out = append(out, s)
			}
			return out
		}
		steps := any(3)
		ordered(steps)
		p := &Phase{Name: Startup, Start: zero().Add(5 * time.Second), End: zero().Add(17 * time.Second), Steps: steps}
		p.Path = criticalPath(p)
		whole(t, p)
	}
}
