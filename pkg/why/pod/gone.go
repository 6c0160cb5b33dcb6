package pod

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/why"
)

// deletedFor is how long ago an event may have told the end of a pod that is asked for.
const deletedFor = time.Hour

// gone explains a pod that does not exist: by the events that tell its end, or by pods whose names begin with its name.
// Events about pods are found by the pod; a controller's by what they say.
func gone(ctx context.Context, c *why.Case, o why.Object) []why.Cause {
	if cause, ok := deletedBy(ctx, c, o); ok {
		return []why.Cause{cause}
	}
	for _, e := range c.Events(ctx, o) {
		switch e.Reason {
		case "Killing", "Evicted", "Preempted", "TaintManagerEviction", "NodeShutdown", "DeletingNode":
			return []why.Cause{{Code: "PodGone", Text: fmt.Sprintf("The last that was seen of it, %s ago: %s.",
				why.Span(c.Now.Sub(why.LastSeen(e))), why.Quote(e.Message)), Evidence: []why.Evidence{why.SeeEvent(e)}}}
		}
	}
	pods, _ := why.List[corev1.Pod](ctx, c.World, o.Namespace, nil)
	var alike []string
	for _, p := range pods {
		if metav1.GetControllerOf(p) != nil && strings.HasPrefix(p.Name, o.Name+"-") {
			alike = append(alike, p.Name)
		}
	}
	if len(alike) == 0 {
		return nil
	}
	return []why.Cause{{Code: "NameIncomplete", Text: fmt.Sprintf("Pods that controllers made have longer names: %s.",
		why.And(alike))}}
}

// deletedBy explains a pod that a controller deleted; ok is false if no event says so.
func deletedBy(ctx context.Context, c *why.Case, o why.Object) (cause why.Cause, ok bool) {
	all, _ := why.List[corev1.Event](ctx, c.World, o.Namespace, nil)
	var created, deleted *corev1.Event
	for _, e := range all {
		_, pod, _ := strings.Cut(e.Message, " pod: ") // "Created pod: x", "Deleted pod: x"
		if e.InvolvedObject.Kind == "Pod" || pod != o.Name || c.Now.Sub(why.LastSeen(e)) > deletedFor {
			continue
		}
		switch e.Reason {
		case "SuccessfulDelete":
			deleted = later(deleted, e)
		case "SuccessfulCreate":
			created = later(created, e)
		}
	}
	if deleted == nil {
		return why.Cause{}, false
	}
	r := &deleted.InvolvedObject
	by := why.Object{Group: r.GroupVersionKind().Group, Kind: r.Kind, Namespace: o.Namespace, Name: r.Name, UID: r.UID}
	ago := why.Span(c.Now.Sub(why.LastSeen(deleted)))
	cause = why.Cause{Code: "DeletedByController", Evidence: []why.Evidence{why.SeeEvent(deleted)},
		Text: fmt.Sprintf("%s %s, which had made it, deleted it %s ago.", by.Kind, by.Name, ago)}
	if created == nil {
		cause.Code = "AdoptedAndDeleted"
		cause.Text = fmt.Sprintf("%s %s deleted it %s ago, and had not made it: it takes pods with the labels of its "+
			"selector for its own, and then had more than its replicas.", by.Kind, by.Name, ago)
		if text := selectorOf(ctx, c, by); text != "" {
			cause.Evidence = append(cause.Evidence, why.See(by, ".spec.selector", text))
		}
		cause.Fixes = []why.Fix{{Text: "Make the pod without these labels."}}
	}
	return cause, true
}

// later is the newer of two events. The first may be nil.
func later(a, b *corev1.Event) *corev1.Event {
	if a == nil || why.LastSeen(b).After(why.LastSeen(a)) {
		return b
	}
	return a
}

// selectorOf is the selector of a controller as JSON, "" if it could not be read.
func selectorOf(ctx context.Context, c *why.Case, o why.Object) string {
	r, served := c.Served(o.Group, o.Kind)
	if !served {
		return ""
	}
	u, _ := c.Object(ctx, r, o.Namespace, o.Name)
	if u == nil {
		return ""
	}
	m, _, _ := unstructured.NestedMap(u.Object, "spec", "selector")
	var s metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &s); err != nil ||
		len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return ""
	}
	return metav1.FormatLabelSelector(&s)
}
