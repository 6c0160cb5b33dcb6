package story

import (
	"fmt"
	"slices"
	"time"

	"bonsai/api/traces"
)

// pods is the component of those steps of a rollout that are pods.
const pods = "pods"

// Rollout joins the stories of the pods of one object into one: it lasts from the first step of any of them until the
// last pod is Ready, and each pod is a step of it. own are the stories of the object itself and of what is between it
// and the pods; their steps count that were taken meanwhile, or shortly before.
func Rollout(object traces.Object, own, of []*Story) *Story {
	out := &Story{Object: object}
	of, later := together(object.Kind, of)
	if later > 0 {
		out.Notes = append(out.Notes, plural(later, "pod")+" created long after the others were Ready: not counted here")
	}
	p := &Phase{Name: Startup, Done: len(of) > 0}
	var unready, lapsed []*Story
	for _, s := range of {
		out.Origin, out.Resolution = s.Origin, max(out.Resolution, s.Resolution)
		for _, n := range s.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
		switch {
		case s.Unready():
			p.Done, unready = false, append(unready, s)
		case s.Lapsed():
			lapsed = append(lapsed, s)
		}
		startup := s.Phase(Startup)
		if startup == nil {
			continue
		}
		p.Last = latest(p.Last, lastOf(startup))
		if p.Waits == "" {
			p.Waits = startup.Waits
		}
		if p.Ended == "" && startup.Ended != Deleted || startup.Ended == "failed" {
			p.Ended = startup.Ended
		}
		end := startup.End
		inner := slices.DeleteFunc(copied(startup.Steps), func(x *Step) bool { return x.Start.After(end) })
		p.Steps = append(p.Steps, &Step{Name: s.Object.Name, Component: pods, Start: startup.Start,
			Duration: startup.Duration(), Steps: inner, Unready: s.Unready()})
	}
	out.Notes = append(out.Notes, pointers(unready, "not Ready")...)
	out.Notes = append(out.Notes, pointers(lapsed, "not Ready now")...)
	if n := len(lapsed); n > 0 {
		p.After = fmt.Sprintf("not Ready now: %d of %s, %s", n, plural(len(of), "pod"), lapsed[0].Now.Why)
	}
	if len(p.Steps) == 0 {
		return out
	}
	p.Start, p.End = extent(p.Steps)
	if p.Done || p.Waits == "" || !p.Last.Before(p.End) {
		p.Last = time.Time{}
	}
	for _, s := range own {
		for _, phase := range s.Phases {
			for _, step := range copied(phase.Steps) {
				if step.Start.After(p.Start.Add(-before)) && step.Start.Before(p.End) {
					p.Steps = append(p.Steps, step)
				}
			}
		}
	}
	ordered(p.Steps)
	p.Start = earliest(p.Start, p.Steps[0].Start)
	p.Path = criticalPath(p)
	out.Phases = []*Phase{p}
	return out
}

// pointers name the first of some pods that are not Ready, and the command that says why.
func pointers(of []*Story, what string) []string {
	switch n := len(of); n {
	case 0:
		return nil
	case 1:
		return []string{of[0].Object.Name + " is " + what + ": " + of[0].AskWhy() + " says why"}
	default:
		return []string{plural(n, "pod") + " are " + what + ": " + of[0].AskWhy() + " says why the first is not"}
	}
}

// lastOf is when the last step of a phase so far ended.
func lastOf(p *Phase) time.Time {
	if !p.Last.IsZero() {
		return p.Last
	}
	return p.End
}

// pause is how long after all others were Ready a pod of a Deployment may begin that is part of the same rollout. Later
// ones replace others, or were asked for later. Rollouts of other kinds may wait longer, for pods that stop.
const pause = time.Minute

// together returns the stories of pods that are of one rollout, by their start, and how many began later.
func together(kind string, of []*Story) (first []*Story, later int) {
	if kind != "Deployment" && kind != "ReplicaSet" {
		return of, 0
	}
	of = slices.DeleteFunc(slices.Clone(of), func(s *Story) bool { return s.Phase(Startup) == nil })
	slices.SortStableFunc(of, func(a, b *Story) int { return a.Phase(Startup).Start.Compare(b.Phase(Startup).Start) })
	var end time.Time
	for i, s := range of {
		p := s.Phase(Startup)
		if i > 0 && p.Start.After(end.Add(pause)) {
			return of[:i], len(of) - i
		}
		if end = latest(end, p.End); !p.Done || p.Ended == Deleted {
			return of, 0 // one that is not yet Ready
		}
	}
	return of, 0
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// copied returns steps that share nothing with those of another story, whose critical path is another one.
func copied(steps []*Step) []*Step {
	out := make([]*Step, len(steps))
	for i, s := range steps {
		c := *s
		c.OnPath, c.Steps = 0, copied(s.Steps)
		out[i] = &c
	}
	return out
}
