package inferred

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/traces"
	"bonsai/pkg/safetext"
)

// Complete adds to the recorded trace of a pod what its object and its events tell and no span does: the messages of
// failures, where spans have the reasons alone, the runs of containers that have ended, and probes that fail. at is
// when the question is asked. The trace's own spans are not changed.
func Complete(t *traces.Trace, p *corev1.Pod, events []corev1.Event, at time.Time) *traces.Trace {
	events = inOrder(events)
	c := &completion{spans: spans{all: slices.Clone(t.Spans)}, Pod: p, events: events, at: at}
	for i := range c.all {
		c.explain(&c.all[i])
	}
	recorded := len(c.all)
	c.runs()
	c.probes()
	for i := range c.all[recorded:] {
		s := &c.all[recorded+i]
		s.ID, s.Instance = "", p.Spec.NodeName // IDs are the store's
	}
	out := *t
	out.Spans = c.all
	return &out
}

// completion is what a recorded trace is completed with.
type completion struct {
	spans
	*corev1.Pod
	events []corev1.Event
	at     time.Time
}

// near is by how much the time of an event may differ from that of the step it tells of: events have whole seconds.
const near = 2 * time.Second

// explain adds the message of a failure to a span that has its reason.
func (c *completion) explain(s *traces.Span) {
	if s.Error == "" || strings.Contains(s.Error, " ") && s.Component != scheduler {
		return // the step did not fail, or says more than a reason
	}
	message := c.event(s)
	if message == "" {
		message = c.status(s)
	}
	if message != "" {
		s.Error += ": " + message
	}
}

// event returns the message of the event that tells of a failed step: it has the reason as its own, or it is about the
// same container, at the time of the step.
func (c *completion) event(s *traces.Span) (message string) {
	for i := range c.events {
		e := &c.events[i]
		first, last := Times(e)
		if first.Add(-near).After(s.End()) || last.Add(near).Before(s.End()) {
			continue
		}
		words := strings.TrimPrefix(e.Message, "Error: ")
		ofContainer := e.Reason == "Failed" && s.Attributes[container] != "" && partOf(e) == s.Attributes[container]
		ofScheduler := e.Reason == "FailedScheduling" && s.Component == scheduler
		if words != s.Error && (ofContainer || ofScheduler || e.Reason == s.Error) {
			message = short(words) // the last one that began before
		}
	}
	return message
}

// status returns the message of a failed step that its container's status still has.
func (c *completion) status(s *traces.Span) string {
	for _, all := range [][]corev1.ContainerStatus{c.Status.InitContainerStatuses, c.Status.ContainerStatuses} {
		for i := range all {
			if all[i].Name != s.Attributes[container] {
				continue
			}
			if w := all[i].State.Waiting; w != nil && w.Reason == s.Error && w.Message != "" {
				return short(w.Message)
			}
			for _, t := range ends(&all[i]) {
				if neverRan(t) && !t.FinishedAt.Add(near).Before(s.End()) && !t.FinishedAt.Add(-near).After(s.End()) {
					return short(t.Message)
				}
			}
		}
	}
	return ""
}

// ends are the ends of a container that its status keeps, the earlier one first.
func ends(c *corev1.ContainerStatus) (out []*corev1.ContainerStateTerminated) {
	for _, t := range []*corev1.ContainerStateTerminated{c.LastTerminationState.Terminated, c.State.Terminated} {
		if t != nil {
			out = append(out, t)
		}
	}
	return out
}

// neverRan reports whether a container ended because its runtime could not start it.
func neverRan(t *corev1.ContainerStateTerminated) bool {
	return t.Message != "" && (t.Reason == "StartError" || t.Reason == "ContainerCannotRun")
}

// runs adds the runs of containers that have ended. A status keeps the last two of a container.
func (c *completion) runs() {
	add := func(name string, all []corev1.ContainerStatus) {
		for i := range all {
			for _, t := range ends(&all[i]) {
				from := c.started(all[i].Name, t.StartedAt.Time)
				if neverRan(t) || from.Before(c.CreationTimestamp.Time) || t.FinishedAt.Before(&t.StartedAt) {
					continue
				}
				ran(&c.spans, name, all[i].Name, t, from)
			}
		}
	}
	add("kubelet.init", c.Status.InitContainerStatuses)
	add("kubelet.run", c.Status.ContainerStatuses)
	if c.Spec.RestartPolicy == corev1.RestartPolicyAlways || c.Spec.RestartPolicy == "" {
		return // it runs for ever
	}
	for i := range c.Status.ContainerStatuses {
		s := &c.Status.ContainerStatuses[i]
		if r := s.State.Running; r != nil {
			c.add("kubelet.run", kubelet, c.started(s.Name, r.StartedAt.Time), c.at,
				map[string]string{container: s.Name})
		}
	}
}

// ran adds the run of a container that has ended, and how it did.
func ran(s *spans, name, of string, t *corev1.ContainerStateTerminated, from time.Time) {
	span := s.add(name, kubelet, from, t.FinishedAt.Time, map[string]string{container: of})
	if t.ExitCode != 0 || t.Signal != 0 {
		span.Error = end(t)
		if t.Message != "" {
			span.Error += ": " + short(t.Message)
		}
	}
}

// started is when a container started, whose status has whole seconds: the end of the step that started it is precise.
func (c *completion) started(name string, second time.Time) time.Time {
	for i := range c.all {
		s := &c.all[i]
		if s.Name == "kubelet.start" && s.Error == "" && s.Attributes[container] == name &&
			s.End().Truncate(time.Second).Equal(second) {
			return s.End()
		}
	}
	return second
}

// probes adds the probes that fail: each by its event, and the readiness probe of a container that has not yet passed
// it from the container's start until now.
func (c *completion) probes() {
	by := map[string]*corev1.Event{} // the last one of a container whose readiness probe fails
	for i := range c.events {
		e := &c.events[i]
		if e.Reason != "Unhealthy" {
			continue
		}
		name := partOf(e)
		if c.waitsForProbe(name) && strings.HasPrefix(e.Message, "Readiness") {
			by[name] = e
			continue
		}
		first, last := Times(e)
		c.add("kubelet.probe", kubelet, first, last, map[string]string{container: name}).Error = counted(e)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		for i := range c.Status.ContainerStatuses {
			if s := &c.Status.ContainerStatuses[i]; s.Name == name {
				c.add("kubelet.probe", kubelet, c.started(name, s.State.Running.StartedAt.Time), c.at,
					map[string]string{container: name}).Error = counted(by[name])
			}
		}
	}
}

// waitsForProbe reports whether a container runs, and has not passed its readiness probe since it started.
func (c *completion) waitsForProbe(name string) bool {
	for i := range c.Status.ContainerStatuses {
		s := &c.Status.ContainerStatuses[i]
		if s.Name != name || s.State.Running == nil || s.Ready {
			continue
		}
		return !slices.ContainsFunc(c.all, func(span traces.Span) bool {
			return span.Name == "kubelet.probe" && span.Error == "" && span.Attributes[container] == name &&
				!span.Start.Before(s.State.Running.StartedAt.Time) && span.Attributes[probeKind] != "Liveness" &&
				span.Attributes[probeKind] != "Startup"
		})
	}
	return false
}

// probeKind is the attribute of a probe's span with its kind.
const probeKind = "bonsai.probe.kind"

// NotCreated returns since when pods of a workload could not be made before a time, by its events, and why; zero values
// if none failed.
func NotCreated(events []corev1.Event, before time.Time) (since time.Time, why string) {
	for _, e := range inOrder(events) {
		first, _ := Times(&e)
		if e.Reason != "FailedCreate" || first.After(before) {
			continue
		}
		if since.IsZero() {
			since = first
		}
		why = counted(&e)
	}
	return since, why
}

// counted is an event's message with how often it came.
func counted(e *corev1.Event) string {
	n := e.Count
	if e.Series != nil {
		n = max(n, e.Series.Count)
	}
	if n > 1 {
		return short(e.Message) + fmt.Sprintf(" (%d times)", n)
	}
	return short(e.Message)
}

// partOf is the container that an event is about, "" for none.
func partOf(e *corev1.Event) string {
	if m := part.FindStringSubmatch(e.InvolvedObject.FieldPath); m != nil {
		return m[1]
	}
	return ""
}

// layers are what the layers below a container put before the message that counts.
var layers = []string{"failed to create containerd task: ", "failed to start containerd task: ",
	"failed to create shim task: ", "OCI runtime create failed: ", "OCI runtime start failed: ", "runc create failed: ",
	"runc start failed: ", "unable to start container process: ", "error during container init: ",
	"container_linux.go: ", "starting container process caused: "}

// short is a message without the names of the layers that it came through, on one line.
func short(message string) string {
	for _, layer := range layers {
		if _, rest, ok := strings.Cut(message, layer); ok && rest != "" {
			message = rest
		}
	}
	return safetext.Message(strings.TrimSpace(message))
}
