package story

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bonsai/api/traces"
)

// maxDepth bounds how deep steps nest. What is deeper, or in a circle, stands beside the others.
const maxDepth = 32

// before is how long before an object's creation a step may have begun that belongs to its startup, such as the request
// that made it.
const before = time.Minute

// New makes the story of a trace. origin and resolution are those of the story.
func New(t *traces.Trace, origin string, resolution time.Duration) *Story {
	s := &Story{Object: t.Object, Owner: t.Owner, Origin: origin, Resolution: resolution}
	spans := slices.Clone(t.Spans)
	slices.SortStableFunc(spans, func(a, b traces.Span) int { return a.Start.Compare(b.Start) })
	if len(spans) > maxSteps {
		s.Notes = append(s.Notes, fmt.Sprintf("%d steps are left out: a story has at most %d",
			len(spans)-maxSteps, maxSteps))
		spans = spans[:maxSteps]
	}
	if t.DroppedSpans > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("the store dropped %d spans of this object", t.DroppedSpans))
	}
	at := rootOf(spans, t.Object)
	spans = once(spans, at)
	var root *traces.Span
	if at >= 0 {
		root = &spans[at]
	}
	s.Phases = phases(tree(spans, at), root, t.DroppedSpans == 0, resolution)
	if p := s.Phase(Shutdown); p != nil {
		s.Gone = p.Done
	}
	if root == nil && !slices.Contains(becomeReady, t.Object.Kind) {
		for _, p := range s.Phases {
			if p.Name == Startup {
				p.Name, p.Path = Known, nil
			}
		}
	}
	return s
}

// becomeReady are the kinds whose first steps are a startup, even if the end of it is not known.
var becomeReady = []string{"Pod", "Node"}

// rootOf returns the index of the span that covers an object's startup, which is named as the object's kind; -1 if it
// has not arrived, as it is sent when the object is Ready.
func rootOf(spans []traces.Span, o traces.Object) int {
	kind := strings.ToLower(o.Kind)
	return slices.IndexFunc(spans, func(s traces.Span) bool { return kind != "" && s.Name == kind })
}

// spanKey names a span: IDs are unique in a trace only.
type spanKey struct{ trace, id string }

// tree makes steps of spans, those inside others below them. Steps below root are on the top level; root itself is
// none. The spans are by start, and so are the steps on each level.
func tree(spans []traces.Span, root int) []*Step {
	index := make(map[spanKey]int, len(spans))
	for i := range spans {
		k := spanKey{spans[i].TraceID, spans[i].ID}
		if _, taken := index[k]; !taken && spans[i].ID != "" {
			index[k] = i
		}
	}
	parent := func(i int) int {
		if p, ok := index[spanKey{spans[i].TraceID, spans[i].Parent}]; ok && spans[i].Parent != "" && p != root {
			return p
		}
		return -1
	}
	steps := make([]*Step, len(spans))
	for i := range spans {
		steps[i] = step(&spans[i])
	}
	var top []*Step
	for i := range spans {
		if i == root {
			continue
		}
		depth := 0
		for p := parent(i); p >= 0 && depth <= maxDepth; p = parent(p) {
			depth++
		}
		if p := parent(i); p >= 0 && depth <= maxDepth {
			steps[p].Steps = append(steps[p].Steps, steps[i])
		} else {
			top = append(top, steps[i])
		}
	}
	return top
}

func step(s *traces.Span) *Step {
	component := s.Component
	if component == "" {
		component, _, _ = strings.Cut(s.Name, ".")
	}
	return &Step{Name: s.Name, Component: component, Instance: s.Instance, Start: s.Start, Duration: max(s.Duration, 0),
		Detail: detail(s), Attributes: maps.Clone(s.Attributes), Error: s.Error}
}

// detailed are the attributes that tell steps of one name apart, in the order in which they are shown.
var detailed = []string{"k8s.container.name", "container.image.name", pluginName, "bonsai.scheduler.extension_point",
	"bonsai.probe.kind", "bonsai.webhook.name", "bonsai.policy.name",
	"http.response.status_code", "k8s.node.name", "owner"}

// pluginName is the attribute that has the name of a scheduler's plug-in. All plug-ins have spans of one name.
const pluginName = "bonsai.scheduler.plugin"

func detail(s *traces.Span) string {
	var parts []string
	for _, name := range detailed {
		if v := s.Attributes[name]; v != "" && v != s.Name {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, " ")
}

// phases splits steps into the phases of a life. root, if it is not nil, covers the startup. complete is that the store
// dropped no span.
func phases(top []*Step, root *traces.Span, complete bool, resolution time.Duration) []*Phase {
	top = nested(top)
	ordered(top)
	stop, stopped := stopping(top)
	startup, running, shutdown := &Phase{Name: Startup}, &Phase{Name: Running}, &Phase{Name: Shutdown}
	for _, s := range top {
		switch {
		case stopped && !s.Start.Before(stop):
			shutdown.Steps = append(shutdown.Steps, s)
		case root != nil && s.Start.After(root.End().Add(max(root.Duration/4, time.Second))):
			running.Steps = append(running.Steps, s)
		case root != nil && s.Name == "kubelet.run" && s.End().After(root.End()):
			running.Steps = append(running.Steps, s) // it began shortly before the pod was Ready
		default:
			startup.Steps = append(startup.Steps, s)
		}
	}
	for _, p := range []*Phase{startup, running, shutdown} {
		p.Start, p.End = extent(p.Steps)
	}
	if at, ok := created(startup.Steps); ok {
		startup.Start = at
	}
	if root != nil {
		startup.Done = true
		startup.End, startup.Ended = endOf(root, stop, shutdown.Steps)
		startup.Start = began(root, startup.Steps, resolution)
	} else if complete && neverReady(startup.Steps, shutdown.Steps) {
		startup.Done, startup.End, startup.Ended = true, stop, Deleted
	}
	_, shutdown.Done = deletedAt(shutdown.Steps)
	var out []*Phase
	for _, p := range []*Phase{startup, running, shutdown} {
		if len(p.Steps) == 0 && (p != startup || root == nil) {
			continue
		}
		if p != running { // in which nothing is waited for
			p.Path = criticalPath(p)
		}
		out = append(out, p)
	}
	return out
}

// began is when a startup began: when the request did that made the object, if that is known. What a controller did
// before is drawn, but is no part of the startup. A creation timestamp has no fractions of a second, which would look
// like up to a second of waiting.
func began(root *traces.Span, steps []*Step, resolution time.Duration) time.Time {
	if at, ok := created(steps); ok && !at.Before(root.Start.Add(-before)) && at.Before(root.End()) {
		return at
	}
	at := root.Start
	if at.Nanosecond() != 0 || resolution >= time.Second {
		return at
	}
	for _, s := range steps { // by their start
		if first := s.Start; !first.Before(at) {
			if first.Sub(at) < time.Second && first.Before(root.End()) {
				return first
			}
			break
		}
	}
	return at
}

const (
	apiserver = "kube-apiserver"
	// maxRequests bounds the requests for which an enclosing step is looked for.
	maxRequests = 100
)

// created returns when the request began that made an object: the step that stored it, or what the API server did
// around that.
func created(steps []*Step) (at time.Time, ok bool) {
	for _, s := range steps {
		if inner, found := created(s.Steps); found {
			at, ok = inner, true
		}
		if s.Name == "apiserver.create" || ok && s.Component == apiserver {
			at, ok = s.Start, true
		}
		if ok {
			return at, true
		}
	}
	return at, false
}

// nested puts the steps of API servers below the requests and controllers' rounds that enclose them: these have traces
// of their own, so that no span says that it is the parent.
func nested(top []*Step) []*Step {
	var requests []*Step
	for _, s := range top {
		if s.Component == apiserver && len(requests) < maxRequests {
			requests = append(requests, s)
		}
	}
	slices.SortStableFunc(requests, func(a, b *Step) int { return cmp.Compare(a.Duration, b.Duration) })
	for _, s := range requests {
		var host *Step
		for _, h := range top {
			if (h.Component == apiserver || h.Component == "kube-controller-manager") && h.Duration > s.Duration &&
				!h.Start.After(s.Start) && !h.End().Before(s.End()) && (host == nil || h.Duration < host.Duration) {
				host = h
			}
		}
		if host != nil {
			host.Steps = append(host.Steps, s)
			top = slices.DeleteFunc(top, func(t *Step) bool { return t == s })
		}
	}
	return top
}

// extent is when the first of some steps began and the last one ended.
func extent(steps []*Step) (start, end time.Time) {
	for i, s := range steps {
		if i == 0 || s.Start.Before(start) {
			start = s.Start
		}
		end = latest(end, s.End())
	}
	return start, end
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// ordered sorts steps by start; of those that start together the longest is first, as it may enclose the others.
func ordered(steps []*Step) {
	slices.SortStableFunc(steps, func(a, b *Step) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(b.Duration, a.Duration), strings.Compare(a.Name, b.Name))
	})
	for _, s := range steps {
		ordered(s.Steps)
	}
}
