package story

import (
	"cmp"
	"slices"
	"time"
)

// maxLines bounds the lines of a picture.
const maxLines = 120

// small is the share from which a step off the critical path is drawn where not all are asked for.
const small = 0.01

// Line is one line of a picture: the heading of a lane, a step, or a gap of the critical path.
type Line struct {
	// Heading is the component of the steps that follow, and where it ran, "" for a step or a gap.
	Heading   string
	Component string
	// Step is nil for a gap, which has Name.
	Step  *Step
	Name  string
	Depth int
	// Start and Duration are where the bar is. Critical are the pieces of it on the critical path, and all of a gap's.
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

// Lines returns what a picture of p shows, and how many steps it leaves out: without all, those off the critical path
// that take less than a hundredth of the phase, and steps of pods in a rollout. In any case the longest are kept.
func (p *Phase) Lines(all bool) (lines []Line, hidden int) {
	own := map[*Step][]Segment{}
	for _, s := range p.Path {
		own[s.Step] = append(own[s.Step], s)
	}
	var add func(s *Step, depth int, inPod bool)
	add = func(s *Step, depth int, inPod bool) {
		shown := all || s.Error != "" || s.OnPath > 0 || depth == 0 || !inPod && p.Share(s.Duration) >= small
		if !shown {
			hidden += count(s)
			return
		}
		lines = append(lines, Line{Step: s, Name: s.Label(), Depth: depth, Start: s.Start, Duration: s.Duration,
			Critical: piecesOf(s, own)})
		for _, inner := range s.Steps {
			add(inner, depth+1, inPod || s.Component == pods)
		}
	}
	for _, lane := range p.Lanes() {
		lines = append(lines, Line{Heading: lane.Heading(), Component: lane.Component})
		for _, s := range lane.Steps {
			add(s, 0, false)
		}
	}
	lines = append(lines, p.gaps(all)...)
	return fewer(lines, hidden)
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
	case p.Ended != "" && p.Done:
		return p.Ended + " after " + took
	case p.Name == Startup && p.Done:
		return "Ready after " + took
	case p.Name == Startup:
		return "not Ready, last step after " + took
	case p.Name == Known:
		return "last step after " + took
	case p.Name == Shutdown && p.Done:
		return "gone after " + took
	case p.Name == Shutdown:
		return "shutting down, last step after " + took
	}
	return "after Ready"
}
