package story

import (
	"slices"

	"bonsai/api/traces"
)

// pods is the component of those steps of a rollout that are pods.
const pods = "pods"

// Rollout joins the stories of the pods of one object into one: it lasts from the first step of any of them, or of the
// object itself, until the last pod is Ready, and each pod is a step of it. own may be nil.
func Rollout(object traces.Object, own *Story, of []*Story) *Story {
	out := &Story{Object: object}
	p := &Phase{Name: Startup, Done: len(of) > 0}
	if own != nil {
		out.Owner, out.Origin, out.Resolution = own.Owner, own.Origin, own.Resolution
		out.Notes = slices.Clone(own.Notes)
		if first := own.Phase(Startup); first != nil {
			p.Steps = append(p.Steps, copied(first.Steps)...)
		}
	}
	for _, s := range of {
		out.Origin, out.Resolution = s.Origin, max(out.Resolution, s.Resolution)
		for _, n := range s.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
		startup := s.Phase(Startup)
		if startup == nil {
			p.Done = false
			continue
		}
		p.Done = p.Done && startup.Done
		end := startup.End
		inner := slices.DeleteFunc(copied(startup.Steps), func(x *Step) bool { return x.Start.After(end) })
		p.Steps = append(p.Steps, &Step{Name: s.Object.Name, Component: pods, Start: startup.Start,
			Duration: startup.Duration(), Steps: inner})
	}
	if len(p.Steps) == 0 {
		return out
	}
	ordered(p.Steps)
	p.Start, p.End = extent(p.Steps)
	if len(of) > 0 { // the object's own steps may be much later than its pods
		p.End = p.Start
		for _, s := range p.Steps {
			if s.Component == pods {
				p.End = latest(p.End, s.End())
			}
		}
	}
	p.Path = criticalPath(p)
	out.Phases = []*Phase{p}
	return out
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
