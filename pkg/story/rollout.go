package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bonsai/api/traces"
)

// pods is the component of those steps of a rollout that are pods.
const pods = "pods"

// noPod is the step in which no pod of a workload was made.
const noPod = "no pod yet"

// Workload is an object that has pods, and what it tells of the time in which there were none.
type Workload struct {
	Object traces.Object
	// At is when the question is asked.
	At time.Time
	// Begun is since when pods of it are waited for, the zero time if that is no part of the story, and Failure says
	// why one could not be made.
	Begun   time.Time
	Failure string
	// Made is when the first of its pods was created, the zero time for none.
	Made time.Time
	// Finished is when a Job was over, the zero time if it is not. How is then "finished" or "failed", and Reason why.
	Finished time.Time
	How      string
	Reason   string
}

// ends reports whether the workload is over once its pods have ended.
func (w *Workload) ends() bool { return w.Object.Kind == "Job" }

// Rollout joins the stories of the pods of one object into one: it lasts from the first step of any of them, or from
// when they are waited for, until the last pod is Ready, and of a Job until that is over. Each pod is a step of it. own
// are the stories of the object itself and of what is between it and the pods; their steps count that were taken
// meanwhile, or shortly before.
func Rollout(w Workload, own, of []*Story) *Story {
	out := &Story{Object: w.Object}
	of, later := together(w.Object.Kind, of)
	if later > 0 {
		out.Notes = append(out.Notes, plural(later, "pod")+" created long after the others were Ready: not counted here")
	}
	p := &Phase{Name: Startup, Done: len(of) > 0, Finite: w.ends()}
	var (
		unready, lapsed []*Story
		missing         bool // some pods were never Ready
		unknown         bool // some pods are Ready, and nobody knows since when
	)
	for _, s := range of {
		out.Origin, out.Resolution = s.Origin, max(out.Resolution, s.Resolution)
		for _, n := range s.Notes {
			if !slices.Contains(out.Notes, n) {
				out.Notes = append(out.Notes, n)
			}
		}
		switch ready := s.Now != nil && s.Now.Ready; {
		case !s.Unready():
		case ready:
			p.Done, unknown = false, true
		default:
			p.Done, missing = false, true
		}
		switch {
		case !s.NotReady():
		case s.Unready():
			unready = append(unready, s)
		default:
			lapsed = append(lapsed, s)
		}
		if startup := s.Phase(Startup); startup != nil {
			p.join(s, startup)
		}
	}
	out.Notes = append(out.Notes, pointers(unready, "not Ready")...)
	out.Notes = append(out.Notes, pointers(lapsed, "not Ready now")...)
	if n := len(lapsed); n > 0 {
		p.After = fmt.Sprintf("not Ready now: %d of %s, %s", n, plural(len(of), "pod"), lapsed[0].Now.Why)
	}
	if !missing && unknown && p.After == "" {
		p.After = readySometime
	}
	if len(of) == 0 && w.Finished.IsZero() {
		out.Notes = append(out.Notes, "no pod of it is there: "+out.AskWhy()+" says why")
	}
	if p.Start, p.End = extent(p.Steps); !w.Begun.IsZero() {
		p.await(&w, own)
	}
	if p.Start.IsZero() { // nothing is known
		return out
	}
	if w.ends() {
		p.finish(&w)
	}
	if p.Done || p.Waits == "" || !p.Last.Before(p.End) {
		p.Last = time.Time{}
	}
	p.with(own)
	p.Path = criticalPath(p)
	out.Phases = []*Phase{p}
	return out
}

// join makes a pod a step of p. A pod of a Job lasts until it has ended, with the runs of its containers.
func (p *Phase) join(s *Story, startup *Phase) {
	p.Last = latest(p.Last, lastOf(startup))
	if p.Waits == "" {
		p.Waits = startup.Waits
	}
	if p.Ended == "" && startup.Ended != Deleted || startup.Ended == "failed" {
		p.Ended = startup.Ended
	}
	steps, end := startup.Steps, startup.End
	if later := s.Phase(Running); p.Finite && s.Now != nil {
		if later != nil {
			steps = append(slices.Clone(steps), later.Steps...)
		}
		if end = latest(end, s.Now.Ended); s.Now.Over == "" {
			end = latest(end, s.Now.At)
		}
		_, last := extent(steps)
		p.Last = latest(p.Last, earliest(last, end))
	}
	inner := slices.DeleteFunc(copied(steps), func(x *Step) bool { return x.Start.After(end) })
	ordered(inner)
	p.Steps = append(p.Steps, &Step{Name: s.Object.Name, Component: pods, Start: startup.Start,
		Duration: end.Sub(startup.Start), Steps: inner, Unready: s.Unready() && (s.Now == nil || !s.Now.Ready)})
}

// await adds the time in which no pod was made. The object's creation has whole seconds. The request that made it, if
// that is known, is precise; without it a wait of less than a second is none.
func (p *Phase) await(w *Workload, own []*Story) {
	from, until, precise := w.Begun, p.Start, false
	none := len(p.Steps) == 0 && w.Made.IsZero()
	switch {
	case len(p.Steps) > 0:
	case !none:
		until = w.Made
	case !w.Finished.IsZero():
		until = w.Finished
	default:
		until = w.At
	}
	for _, s := range own {
		if s.Object.UID != w.Object.UID {
			continue
		}
		for _, phase := range s.Phases {
			if at, ok := created(phase.Steps); ok && at.Sub(from) >= 0 && at.Sub(from) < time.Second {
				from, precise = at, true
			}
		}
	}
	if waited := until.Sub(from); waited < 0 || !precise && waited < time.Second {
		return
	}
	p.Start = from
	if p.End = latest(p.End, until); none && !w.Finished.IsZero() {
		return // its pods are gone
	}
	if none {
		p.Waits, p.Done = "no pod of it is there", false
	}
	p.Steps = append(p.Steps, &Step{Name: noPod, Component: strings.ToLower(w.Object.Kind), Start: from,
		Duration: until.Sub(from), Error: w.Failure})
}

// finish says how a Job ended. One that is not over goes on until now.
func (p *Phase) finish(w *Workload) {
	p.After = "" // a pod of it that is not Ready has ended, or will
	if p.Done = !w.Finished.IsZero(); p.Done {
		p.Ended, p.After = w.How, w.Reason
		if late := p.End.Sub(w.Finished); late < 0 || late >= time.Second { // the Job tells whole seconds
			p.End = w.Finished
		}
		return
	}
	p.End, p.Ended = latest(p.End, w.At), ""
}

// with adds the steps of the object itself, and of what is between it and its pods.
func (p *Phase) with(own []*Story) {
	for _, s := range own {
		for _, phase := range s.Phases {
			for _, step := range copied(phase.Steps) {
				if step.Start.After(p.Start.Add(-before)) && step.Start.Before(p.End) {
					p.Steps = append(p.Steps, step)
				}
			}
		}
	}
	if ordered(p.Steps); len(p.Steps) > 0 {
		p.Start = earliest(p.Start, p.Steps[0].Start)
	}
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
