// Package inferred makes traces of what every cluster keeps about its objects: conditions, the states of containers,
// events, managedFields and the times of owners. It is for servers that record no spans. Most of these times have no
// fractions of a second, and much is not there at all; the notes say what.
package inferred

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/traces"
	"bonsai/pkg/safetext"
)

// Resolution is that of the times in objects.
const Resolution = time.Second

// maxEvents bounds the events of one object that become steps, and maxWrites its managedFields.
const (
	maxEvents = 200
	maxWrites = 50
)

// Owner is what is known of an object's controller.
type Owner struct {
	Kind, Name string
	Created    time.Time
}

// spans collects the spans of one object.
type spans struct {
	all []traces.Span
}

// add adds a span from from to to. An end before the start becomes the start, as both are rounded.
func (s *spans) add(name, component string, from, to time.Time, attributes map[string]string) *traces.Span {
	if to.Before(from) {
		to = from
	}
	s.all = append(s.all, traces.Span{ID: fmt.Sprintf("%016x", len(s.all)+1), Name: name, Component: component,
		Start: from.UTC(), Duration: to.Sub(from), Attributes: attributes})
	return &s.all[len(s.all)-1]
}

// trace returns the trace of the spans.
func (s *spans) trace(kind, resource string, o *metav1.ObjectMeta) *traces.Trace {
	slices.SortStableFunc(s.all, func(a, b traces.Span) int { return a.Start.Compare(b.Start) })
	t := &traces.Trace{Spans: s.all, SpanCount: len(s.all), Object: traces.Object{Kind: kind, Resource: resource,
		Namespace: o.Namespace, Name: o.Name, UID: o.UID}}
	t.Name, t.Namespace, t.CreationTimestamp = string(o.UID), o.Namespace, o.CreationTimestamp
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		t.Owner = &traces.Object{Kind: c.Kind, Namespace: o.Namespace, Name: c.Name, UID: c.UID}
	}
	for i := range s.all {
		if end := s.all[i].End(); end.After(t.LastSeen) {
			t.LastSeen = end
		}
	}
	return t
}

// condition returns when a condition became true, and whether it is.
func condition[T any](all []T, is func(*T) (string, bool, metav1.Time), kind string) (time.Time, bool) {
	for i := range all {
		if name, yes, at := is(&all[i]); name == kind && yes {
			return at.Time, !at.IsZero()
		}
	}
	return time.Time{}, false
}

// Times returns when an event happened first and last.
func Times(e *corev1.Event) (first, last time.Time) {
	first, last = e.FirstTimestamp.Time, e.LastTimestamp.Time
	second := e.EventTime.Truncate(time.Second)
	if !e.EventTime.IsZero() && (first.IsZero() || first.Truncate(time.Second).Equal(second)) {
		first = e.EventTime.Time // with fractions of a second
	}
	if e.Series != nil && e.Series.LastObservedTime.After(last) {
		last = e.Series.LastObservedTime.Time
	}
	if first.IsZero() {
		first = e.CreationTimestamp.Time
	}
	if last.Before(first) {
		last = first
	}
	return first, last
}

// inOrder returns the events of an object that are looked at, by time.
func inOrder(events []corev1.Event) []corev1.Event {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b corev1.Event) int {
		x, _ := Times(&a)
		y, _ := Times(&b)
		return cmp.Or(x.Compare(y), strings.Compare(a.Reason, b.Reason))
	})
	return events[:min(len(events), maxEvents)]
}

// Node is the trace of a node: from its creation until it was Ready.
func Node(n *corev1.Node) *traces.Trace {
	s := &spans{}
	ready, ok := condition(n.Status.Conditions, func(c *corev1.NodeCondition) (string, bool, metav1.Time) {
		return string(c.Type), c.Status == corev1.ConditionTrue, c.LastTransitionTime
	}, string(corev1.NodeReady))
	if ok {
		s.add("node", "kubelet", n.CreationTimestamp.Time, ready, nil)
		s.add("kubelet.ready", "kubelet", n.CreationTimestamp.Time, ready, nil)
	}
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady && !c.LastTransitionTime.IsZero() {
			s.add("condition "+string(c.Type)+"="+string(c.Status), "kubelet", c.LastTransitionTime.Time,
				c.LastTransitionTime.Time, map[string]string{"reason": c.Reason})
		}
	}
	return s.trace("Node", "nodes", &n.ObjectMeta)
}

// Object is the trace of an object of any kind: its creation and the last write of each manager of its fields.
func Object(kind, resource string, o *metav1.ObjectMeta) *traces.Trace {
	s := &spans{}
	s.add("apiserver.create", "kube-apiserver", o.CreationTimestamp.Time, o.CreationTimestamp.Time, nil)
	s.writes(o, func(string) bool { return true })
	return s.trace(kind, resource, o)
}

// writes adds the last write of each manager that is wanted.
func (s *spans) writes(o *metav1.ObjectMeta, wanted func(manager string) bool) {
	for i, m := range o.ManagedFields {
		if m.Time.IsZero() || !wanted(m.Manager) || i >= maxWrites {
			continue
		}
		name := "write"
		if m.Subresource != "" {
			name = "write " + m.Subresource
		}
		s.add(name, safetext.Text(m.Manager), m.Time.Time, m.Time.Time,
			map[string]string{"operation": string(m.Operation)})
	}
}
