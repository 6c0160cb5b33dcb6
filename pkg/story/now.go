package story

import (
	"strings"
	"time"

	"bonsai/api/traces"
)

// Now is how a pod is when the question is asked. Its spans do not tell that: they are of what was done.
type Now struct {
	At    time.Time `json:"at"`
	Ready bool      `json:"ready"`
	// Why says in a few words why it is not Ready: "CrashLoopBackOff (exit code 1)".
	Why string `json:"why,omitempty"`
	// Lost is since when it is not Ready, if it was before; the zero time otherwise.
	Lost time.Time `json:"lost,omitzero"`
	// Over is "succeeded" or "failed" for a pod that has ended, and Ended when its last container did; the zero time if
	// that is not known.
	Over  string    `json:"over,omitempty"`
	Ended time.Time `json:"ended,omitzero"`
}

// SetNow adds to a story how its pod is now, which must be there. A startup that is not done goes on until now.
func (s *Story) SetNow(n Now) {
	s.Now = &n
	s.Gone = false // a finalizer may hold what the kubelet deleted
	if p := s.Phase(Shutdown); p != nil && !p.Done && n.Over != "" {
		p.After = "it has " + n.Over
	}
	p := s.Phase(Startup)
	switch {
	case p == nil || p.Ended != "" || n.Ready && p.Done:
	case n.Ready:
		p.After = readySometime
	case p.Done && n.Over != "":
		if p.Over = n.Over; n.Ended.After(p.Start) {
			p.Over += " after " + Text(n.Ended.Sub(p.Start), s.Resolution)
		}
	case p.Done:
		p.After = "not Ready now: " + n.Why
	case n.Over == "" && s.Phase(Shutdown) == nil:
		p.wait(n)
	}
}

// readySometime is said of what is Ready where nobody recorded when it became so.
const readySometime = "Ready now, but it is not known when it became so"

// wait lets a phase that is not done go on until now.
func (p *Phase) wait(n Now) {
	p.Waits, p.Lost = n.Why, n.Lost
	if n.At.After(p.End) {
		p.Last, p.End = p.End, n.At
	}
	p.Path = criticalPath(p)
}

// Lapsed reports whether the object was Ready, and is not now, although it has not ended.
func (s *Story) Lapsed() bool {
	return !s.Unready() && s.Now != nil && !s.Now.Ready && s.Now.Over == ""
}

// NotReady reports whether the object is there and not Ready, as far as is known.
func (s *Story) NotReady() bool {
	return !s.Gone && (s.Lapsed() || s.Unready() && (s.Now == nil || s.Now.Over == "" && !s.Now.Ready))
}

// NotReady is an object that is not Ready now.
type NotReady struct {
	Object traces.Object `json:"object"`
	Why    string        `json:"why,omitempty"`
}

// maxNotReady bounds the objects that a summary names.
const maxNotReady = 3

// note names an object if it is not Ready.
func (s *Summary) note(of *Story) {
	switch {
	case !of.NotReady():
	case len(s.NotReady) == maxNotReady:
		s.MoreNotReady++
		s.scattered = s.scattered || of.Object.Namespace != s.NotReady[0].Object.Namespace
	default:
		n := NotReady{Object: of.Object}
		if of.Now != nil {
			n.Why = of.Now.Why
		}
		s.NotReady = append(s.NotReady, n)
	}
}

// Asks name the objects that are not Ready, a line each, with the commands that say why.
func (s *Summary) Asks() (lines []string) {
	for _, n := range s.NotReady {
		line := "not Ready now: " + askWhy(n.Object)
		if n.Why != "" {
			line += " # " + n.Why
		}
		lines = append(lines, line)
	}
	if s.MoreNotReady > 0 {
		verb := " are"
		if s.MoreNotReady == 1 {
			verb = " is"
		}
		line := plural(s.MoreNotReady, "more pod") + verb + " not Ready"
		if !s.scattered {
			line += ": kubectl why namespace/" + s.NotReady[0].Object.Namespace
		}
		lines = append(lines, line)
	}
	return lines
}

// askWhy is the command that says why an object in a namespace is as it is.
func askWhy(o traces.Object) string {
	return "kubectl why -n " + o.Namespace + " " + strings.ToLower(o.Kind) + "/" + o.Name
}
