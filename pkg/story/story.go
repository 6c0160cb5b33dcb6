// Package story tells the life of an object from its spans: the steps as a tree, the times in which nothing of ours
// ran, and the critical path, which are the steps that determine when the object was ready. What many objects have in
// common is a Summary: how long each step takes, and what it contributes.
//
// The package is pure: a story follows from a trace alone. Its subpackages draw stories, and infer traces from the
// objects of a cluster that records none.
package story

import (
	"slices"
	"strings"
	"time"

	"bonsai/api/traces"
)

// maxSteps bounds the steps of a story: a store may hold more spans of an object than anybody can look at, and the
// critical path takes quadratic time in the worst case. The earliest steps are kept.
const maxSteps = 5000

// Names of phases.
const (
	Startup  = "startup"  // from creation to Ready, or to the last step so far
	Running  = "running"  // what happened after: restarts, probes
	Shutdown = "shutdown" // from the wish to stop to the object's end
	Known    = "known"    // what is known of an object that does not become Ready
)

// Story is the life of one object.
type Story struct {
	Object traces.Object  `json:"object"`
	Owner  *traces.Object `json:"owner,omitempty"`
	// Origin names what the steps were read from, as a sentence's end: "traces.bonsai.io".
	Origin string `json:"origin"`
	// Resolution is the smallest difference of times that means anything: 0 for spans, a second for the times in
	// Kubernetes' objects.
	Resolution time.Duration `json:"resolution,omitempty"`
	// Now is how the object is when the question is asked, nil if that is not known.
	Now *Now `json:"now,omitempty"`
	// Gone is that the object is no longer there.
	Gone bool `json:"gone,omitempty"`
	// Notes say what is missing.
	Notes  []string `json:"notes,omitempty"`
	Phases []*Phase `json:"phases"`
}

// Phase is a part of a life that is looked at by itself, because days can lie between two of them.
type Phase struct {
	Name  string    `json:"name"`
	Start time.Time `json:"start"`
	// End is when the phase was over: for a startup, when the object was Ready, or when it ended or began to stop
	// without. Steps may end later.
	End time.Time `json:"end"`
	// Done reports whether that is known. A phase without it ends with its last step so far or, where it is known that
	// the object still waits, when the question was asked.
	Done bool `json:"done"`
	// Last is when the last step so far ended, in a phase that goes on until the question was asked, and Waits says why
	// it does.
	Last  time.Time `json:"last,omitzero"`
	Waits string    `json:"waits,omitempty"`
	// Lost is since when the object is not Ready, if it was before, and its startup is not known.
	Lost time.Time `json:"lost,omitzero"`
	// Over says how and when an object ended that was Ready before: "succeeded after 2.90s".
	Over string `json:"over,omitempty"`
	// Finite is that the object is to end, as a Job is, and not to be Ready.
	Finite bool `json:"finite,omitempty"`
	// After is a clause about what came after a startup: "not Ready now: CrashLoopBackOff (exit code 1)".
	After string `json:"after,omitempty"`
	// Ended is how the object ended where its startup did not end with Ready: "succeeded", "failed", Deleted, Stopped;
	// of a Job "finished" or "failed".
	Ended string  `json:"ended,omitempty"`
	Steps []*Step `json:"steps"`
	// Path is the critical path: segments that follow one another without a hole from Start to End.
	Path []Segment `json:"path,omitempty"`
}

// Duration is how long the phase took.
func (p *Phase) Duration() time.Duration { return p.End.Sub(p.Start) }

// Share is what part of the phase d is, from 0 to 1.
func (p *Phase) Share(d time.Duration) float64 {
	if total := p.Duration(); total > 0 {
		return float64(d) / float64(total)
	}
	return 0
}

// Step is one span with those inside it.
type Step struct {
	Name      string        `json:"name"`
	Component string        `json:"component"`
	Instance  string        `json:"instance,omitempty"`
	Start     time.Time     `json:"start"`
	Duration  time.Duration `json:"duration"`
	// Detail is what tells the step from others of its name: a container, an image, a plug-in.
	Detail     string            `json:"detail,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Error      string            `json:"error,omitempty"`
	// Unready is that the step is a pod of a rollout that is not Ready.
	Unready bool `json:"unready,omitempty"`
	// OnPath is how much of the critical path the step has, including the steps inside it.
	OnPath time.Duration `json:"onPath,omitempty"`
	Steps  []*Step       `json:"steps,omitempty"`
}

// End is when the step ended.
func (s *Step) End() time.Time { return s.Start.Add(s.Duration) }

// Label is the step's name without the component, where a picture has that beside it: "pull" of kubelet.pull.
func (s *Step) Label() string {
	if plugin := s.Attributes[pluginName]; plugin != "" {
		return plugin
	}
	prefix, rest, ok := strings.Cut(s.Name, ".")
	if ok && prefix != "" && rest != "" && strings.HasSuffix(s.Component, prefix) {
		return rest
	}
	return s.Name
}

// Key is the name by which steps of many objects are put together: that of the span and, of a scheduler's plug-ins,
// which one it is.
func (s *Step) Key() string {
	if plugin := s.Attributes[pluginName]; plugin != "" {
		return s.Name + " " + plugin
	}
	return s.Name
}

// Lane is the steps of one component that are inside no other step.
type Lane struct {
	Component string
	Steps     []*Step
}

// Heading is the component, and where it ran if all steps say the same.
func (l *Lane) Heading() string {
	instance := l.Steps[0].Instance
	for _, s := range l.Steps {
		if s.Instance != instance {
			return l.Component
		}
	}
	if instance == "" || instance == l.Component {
		return l.Component
	}
	return l.Component + " on " + instance
}

// Lanes returns the steps by component, in the order in which the components began.
func (p *Phase) Lanes() []Lane {
	var out []Lane
	for _, s := range p.Steps {
		i := slices.IndexFunc(out, func(l Lane) bool { return l.Component == s.Component })
		if i < 0 {
			i = len(out)
			out = append(out, Lane{Component: s.Component})
		}
		out[i].Steps = append(out[i].Steps, s)
	}
	return out
}

// Phase returns the phase of that name, nil if there is none.
func (s *Story) Phase(name string) *Phase {
	for _, p := range s.Phases {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Unready reports whether the object was not Ready in its startup, as far as is known.
func (s *Story) Unready() bool {
	p := s.Phase(Startup)
	return p == nil || !p.Done || p.Ended == Deleted
}

// AskWhy is the command that says why an object is as it is.
func (s *Story) AskWhy() string { return askWhy(s.Object) }

// Title names the object: "pod default/web".
func (s *Story) Title() string { return Title(s.Object) }

// Title names an object: "pod default/web".
func Title(o traces.Object) string {
	kind := strings.ToLower(o.Kind)
	if kind == "" {
		kind = o.Resource
	}
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}
