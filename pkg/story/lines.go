package story

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// maxLines bounds the lines of a picture.
const maxLines = 120

// Shares from which a step inside another one is drawn where not all are asked for: any step, and a part of a request
// to the API server. There are many of these, and few matter.
const (
	small       = 0.01
	requestPart = 0.1
)

// Line is one line of a picture: the heading of a lane, a step, or a gap of the critical path.
type Line struct {
	// Heading is the component of the steps that follow, and where it ran, "" for a step or a gap.
	Heading   string
	Component string
	// Step is nil for a gap, which has Name. Again are later steps of the same name that went the same way, such as
	// further starts of a container that fail alike.
	Step  *Step
	Again []*Step
	Name  string
	Depth int
	// Start is where the bar is, and Duration how long all steps of the line took. Critical are the pieces of them on
	// the critical path, and all of a gap's.
	Start    time.Time
	Duration time.Duration
	Critical []Segment
}

// OnPath is how much of the critical path the line has.
func (l *Line) OnPath() time.Duration {
	var sum time.Duration
	for _, s := range l.Critical {
		sum += s.Duration
	}
	return sum
}

// Lines returns what a picture of p shows, and how many steps it leaves out: without all, those inside others that take
// less than a hundredth of the phase, of pods in a rollout those that have less of the critical path, and parts of
// requests that take less than a tenth. Steps that failed are shown. In any case the longest are kept.
func (p *Phase) Lines(all bool) (lines []Line, hidden int) {
	own := map[*Step][]Segment{}
	for _, s := range p.Path {
		own[s.Step] = append(own[s.Step], s)
	}
	var add func(steps []*Step, in *Step, depth int, inPod bool)
	add = func(steps []*Step, in *Step, depth int, inPod bool) {
		first := map[alike]int{} // the line of each, by its index
		for _, s := range steps {
			if !all && s.Error == "" && depth > 0 && p.weight(s, inPod) < least(s, in) {
				hidden += count(s)
				continue
			}
			key := alike{s.Component, s.Label(), s.Detail, s.Error}
			if i, ok := first[key]; ok && !all && !s.Start.Before(lines[i].last().End()) {
				lines[i].repeat(s, piecesOf(s, own))
				hidden += count(s) - 1
				continue
			}
			first[key] = len(lines)
			lines = append(lines, Line{Step: s, Name: s.Label(), Depth: depth, Start: s.Start, Duration: s.Duration,
				Critical: piecesOf(s, own)})
			add(s.Steps, s, depth+1, inPod || s.Component == pods)
		}
	}
	for _, lane := range p.Lanes() {
		lines = append(lines, Line{Heading: lane.Heading(), Component: lane.Component})
		add(lane.Steps, nil, 0, false)
	}
	lines = append(lines, p.gaps(all)...)
	return fewer(lines, hidden)
}

// alike is what steps have in common that share a line.
type alike struct{ component, label, detail, failure string }

// weight is what part of the phase a step has: of a pod in a rollout, what it has of the critical path.
func (p *Phase) weight(s *Step, inPod bool) float64 {
	if inPod {
		return p.Share(s.OnPath)
	}
	return p.Share(max(s.Duration, s.OnPath))
}

// least is the weight from which a step inside another one is drawn.
func least(s, in *Step) float64 {
	if s.Component == apiserver && in.Component == apiserver {
		return requestPart
	}
	return small
}

// last is the last step of a line.
func (l *Line) last() *Step {
	if n := len(l.Again); n > 0 {
		return l.Again[n-1]
	}
	return l.Step
}

// repeat adds a later step to a line, with its pieces of the critical path.
func (l *Line) repeat(s *Step, critical []Segment) {
	l.Again = append(l.Again, s)
	l.Name = fmt.Sprintf("%s %dx", l.Step.Label(), len(l.Again)+1)
	l.Duration += s.Duration
	l.Critical = append(l.Critical, critical...)
}

// Bars are the steps of a line: each has a bar. A gap has none.
func (l *Line) Bars() []*Step {
	if l.Step == nil {
		return nil
	}
	return append([]*Step{l.Step}, l.Again...)
}

// gaps are the lines of the gaps, one for all of a name: what is tried again and again has many.
func (p *Phase) gaps(all bool) []Line {
	out := []Line{{Heading: "between the steps"}}
	for _, s := range p.Path {
		if !s.Gap {
			continue
		}
		i := slices.IndexFunc(out, func(l Line) bool { return l.Name == s.Name })
		if i < 0 {
			i = len(out)
			out = append(out, Line{Name: s.Name, Start: s.Start})
		}
		out[i].Duration += s.Duration
		out[i].Critical = append(out[i].Critical, s)
	}
	out = slices.DeleteFunc(out, func(l Line) bool {
		return l.Heading == "" && !all && p.Share(l.Duration) < small
	})
	if len(out) == 1 {
		return nil
	}
	return out
}

// fewer drops the shortest steps off the critical path from lines that are too many.
func fewer(lines []Line, hidden int) ([]Line, int) {
	if len(lines) <= maxLines {
		return lines, hidden
	}
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	rank := func(l *Line) time.Duration {
		if l.Heading != "" {
			return 1<<63 - 1
		}
		return l.OnPath()
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(rank(&lines[b]), rank(&lines[a])), cmp.Compare(lines[b].Duration, lines[a].Duration))
	})
	keep := map[int]bool{}
	for _, i := range order[:maxLines] {
		keep[i] = true
	}
	var out []Line
	for i, l := range lines {
		if keep[i] {
			out = append(out, l)
		} else {
			hidden++
		}
	}
	return out, hidden
}

// count is the number of steps of a tree.
func count(s *Step) int {
	n := 1
	for _, inner := range s.Steps {
		n += count(inner)
	}
	return n
}

// piecesOf are the segments of a step and of those inside it, by what each has itself.
func piecesOf(s *Step, own map[*Step][]Segment) []Segment {
	if s.OnPath == 0 {
		return nil
	}
	out := slices.Clone(own[s])
	for _, inner := range s.Steps {
		out = append(out, piecesOf(inner, own)...)
	}
	return out
}

// Extent is what a picture of the phase covers: a little more than the phase if steps go on after it.
func (p *Phase) Extent() (start, end time.Time) {
	start, end = p.Start, p.End
	_, last := extent(p.Steps)
	if limit := end.Add(p.Duration() / 4); last.After(limit) {
		last = limit
	}
	return start, latest(end, last)
}

// Headline says how long the phase took and how it ended.
func (p *Phase) Headline(resolution time.Duration) string {
	took := Text(p.Duration(), resolution)
	switch {
	case p.Ended == Deleted && p.Done:
		return "Not Ready in " + took + "; it was deleted then"
	case p.Ended != "" && p.Done && p.After != "":
		return p.Ended + " after " + took + "; " + p.After
	case p.Ended != "" && p.Done:
		return p.Ended + " after " + took
	case p.Finite && p.Waits != "":
		return "not finished after " + took + ": " + p.Waits
	case p.Finite:
		return "not finished after " + took
	case p.Name == Startup && p.Done && p.After != "":
		return "was Ready after " + took + "; " + p.After
	case p.Name == Startup && p.Done && p.Over != "":
		return p.Over + "; Ready after " + took
	case p.Name == Startup && p.Done:
		return "Ready after " + took
	case p.Name == Startup && p.Waits == "" && p.After != "":
		return p.After + "; last step after " + took
	case p.Name == Startup && !p.Lost.IsZero():
		return "was Ready; not Ready for " + Text(p.End.Sub(p.Lost), resolution) + ": " + p.Waits
	case p.Name == Startup && p.Waits != "" && !p.Last.IsZero():
		return "not Ready for " + took + ": " + p.Waits + "; last step after " + Text(p.Last.Sub(p.Start), resolution)
	case p.Name == Startup && p.Waits != "":
		return "not Ready for " + took + ": " + p.Waits
	case p.Name == Startup:
		return "not Ready, last step after " + took
	case p.Name == Known:
		return "last step after " + took
	case p.Name == Shutdown && p.After != "":
		return p.After + ", cleaned up within " + took
	case p.Name == Shutdown && p.Done:
		return "gone after " + took
	case p.Name == Shutdown:
		return "shutting down, last step after " + took
	}
	return "after Ready"
}
