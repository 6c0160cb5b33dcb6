package why

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/safetext"
)

// ObjectOf names an object of a kind. group is "" for the core group.
func ObjectOf(group, kind string, m metav1.Object) Object {
	return Object{Group: group, Kind: kind, Namespace: m.GetNamespace(), Name: m.GetName(), UID: m.GetUID()}
}

// Controller names the object that controls another one, nil if none does.
func Controller(m metav1.Object) *Object {
	o := metav1.GetControllerOf(m)
	if o == nil {
		return nil
	}
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		group = ""
	}
	return &Object{Group: group, Kind: o.Kind, Namespace: m.GetNamespace(), Name: o.Name, UID: o.UID}
}

// String is how sentences name an object: Pod shop/web, Node n1.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Arg is how kubectl's arguments name an object, without its namespace: deployment/web.
func (o Object) Arg() CommandLine {
	kind := strings.ToLower(o.Kind)
	if o.Group != "" && strings.Contains(o.Group, ".") && !strings.HasSuffix(o.Group, ".k8s.io") {
		kind += "." + o.Group
	}
	return Word(kind + "/" + o.Name)
}

// Flag is the argument that says in which namespace an object is, with a space before it; empty for one without.
func (o Object) Flag() CommandLine {
	if o.Namespace == "" {
		return ""
	}
	return " -n " + Word(o.Namespace)
}

// Quote shows a text of others, such as a runtime's message: cut, on one line and in quotation marks. Marks of its own
// stay as they are, which reads better than escaped ones.
func Quote(text string) string { return "“" + safetext.Text(strings.TrimSpace(text)) + "”" }

// Span is a duration as people say it, in its largest unit: "3 minutes".
func Span(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / u.unit); n > 0 {
			return Count(n, u.name)
		}
	}
	return Count(max(int(d/time.Second), 0), "second")
}

// Count is a number of things: "1 pod", "2 pods".
func Count(n int, thing string) string {
	switch {
	case n == 1:
		return "1 " + thing
	case strings.HasSuffix(thing, "s") || strings.HasSuffix(thing, "x"):
		return fmt.Sprintf("%d %ses", n, thing)
	case strings.HasSuffix(thing, "y") && !strings.HasSuffix(thing, "ay"):
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(thing, "y"))
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// And joins names: "a", "a and b", "a, b and 3 more". At most four are named.
func And(names []string) string {
	const most = 4
	switch n := len(names); {
	case n == 0:
		return "none"
	case n == 1:
		return names[0]
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), n-most+1)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// See is evidence in a field. Its value is cut and cleaned.
func See(o Object, field, value string, at ...metav1.Time) Evidence {
	e := Evidence{Object: o, Field: field, Value: safetext.Text(value)}
	if len(at) > 0 && !at[0].IsZero() {
		e.Time = &at[0].Time
	}
	return e
}

// SeeDeleted is evidence of when an object is to be gone: when it was deleted, or of a pod, when its grace period ends.
func SeeDeleted(o Object, m metav1.Object) Evidence {
	at := *m.GetDeletionTimestamp()
	return See(o, ".metadata.deletionTimestamp", at.UTC().Format(time.RFC3339), at)
}

// SeeMade is evidence of when an object was made.
func SeeMade(o Object, m metav1.Object) Evidence {
	at := m.GetCreationTimestamp()
	return See(o, ".metadata.creationTimestamp", at.UTC().Format(time.RFC3339), at)
}

// SeeEvent is evidence in an event.
func SeeEvent(e *corev1.Event) Evidence {
	at := LastSeen(e)
	return Evidence{Object: Object{Kind: "Event", Namespace: e.Namespace, Name: e.Name}, Field: ".message",
		Value: safetext.Text(e.Message), Time: &at}
}

// Absent is evidence that an object does not exist.
func Absent(kind, namespace, name string) Evidence {
	return Evidence{Object: Object{Kind: kind, Namespace: namespace, Name: name}, Value: "does not exist"}
}

// Condition is evidence in a condition of an object's status.
func Condition(o Object, kind, status, reason, message string, at metav1.Time) Evidence {
	value := status
	if reason != "" {
		value += " (" + reason + ")"
	}
	if message != "" {
		value += ": " + message
	}
	return See(o, `.status.conditions[?(@.type=="`+kind+`")]`, value, at)
}
