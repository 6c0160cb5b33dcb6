package story

import (
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
	var unready []*Story
	for _, s := range of {
		out.Origin, out.Resolution = s.Origin, max(out.Resolution, s.Resolution)
		for _, n := range s.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
		if s.Unready() {
			p.Done, unready = false, append(unready, s)
		}
		startup := s.Phase(Startup)
		if startup == nil {
			continue
		}
		if p.Ended == "" && startup.Ended != Deleted || startup.Ended == "failed" {
			p.Ended = startup.Ended
		}
		end := startup.End
		inner := slices.DeleteFunc(copied(startup.Steps), func(x *Step) bool { return x.Start.After(end) })
		p.Steps = append(p.Steps, &Step{Name: s.Object.Name, Component: pods, Start: startup.Start,
			Duration: startup.Duration(), Steps: inner, Unready: s.Unready()})
	}
	switch n := len(unready); {
	case n == 1:
		out.Notes = append(out.Notes, unready[0].Object.Name+" is not Ready: "+unready[0].AskWhy()+" says why")
	case n > 1:
		out.Notes = append(out.Notes, plural(n, "pod")+" are not Ready: "+unready[0].AskWhy()+
			" says why the first is not")
	}
	if len(p.Steps) == 0 {
		return out
	}
	p.Start, p.End = extent(p.Steps)
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
