package core

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// Longest texts of an event in its new form.
const (
	maxEventReason   = 128
	maxEventAction   = 128
	maxEventInstance = 128
	maxEventNote     = 1024
)

// validateLegacyEvent checks an event written through the core group; one with an eventTime must be complete in the new
// form.
func validateLegacyEvent(e *corev1.Event) field.ErrorList {
	errs := eventNamespace(e)
	if !e.EventTime.IsZero() {
		errs = append(errs, eventFields(e, "reportingComponent")...)
	}
	return errs
}

// ValidateEvent checks an event written through events.k8s.io.
func ValidateEvent(e *corev1.Event) field.ErrorList {
	errs := eventNamespace(e)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", "has invalid value: "+e.Type))
	}
	for _, f := range []struct {
		name  string
		wrong bool
	}{
		{"firstTimestamp", !e.FirstTimestamp.IsZero()},
		{"lastTimestamp", !e.LastTimestamp.IsZero()},
		{"count", e.Count != 0},
		{"source", e.Source != (corev1.EventSource{})},
	} {
		if f.wrong {
			errs = append(errs, field.Invalid(field.NewPath(f.name), "", "needs to be unset"))
		}
	}
	errs = append(errs, ValidateEventSeries(e)...)
	if e.EventTime.IsZero() {
		return errs
	}
	return append(errs, eventFields(e, "reportingController")...)
}

// ValidateEventSeries: a series has two occurrences at least, and a last one.
func ValidateEventSeries(e *corev1.Event) field.ErrorList {
	if e.Series == nil {
		return nil
	}
	var errs field.ErrorList
	at := field.NewPath("series")
	if e.Series.Count < 2 {
		errs = append(errs, field.Invalid(at.Child("count"), "", "should be at least 2"))
	}
	if e.Series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(at.Child("lastObservedTime"), ""))
	}
	return errs
}

// validEventName: events are named by programs, in any way that a path can hold.
func validEventName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

// eventNamespace: an event lives where its object does; those about cluster-scoped objects in default. One in the new
// form may tell of an object of another namespace.
func eventNamespace(e *corev1.Event) field.ErrorList {
	ns := e.InvolvedObject.Namespace
	switch {
	case ns == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem,
		ns != "" && ns != e.Namespace && e.EventTime.IsZero():
		return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), ns,
			"does not match event.namespace")}
	}
	return nil
}

// eventFields checks what an event in its new form must say, and that it says it briefly.
func eventFields(e *corev1.Event, controller string) field.ErrorList {
	var errs field.ErrorList
	if e.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath(controller), ""))
	}
	errs = append(errs, validate.QualifiedName(e.ReportingController, field.NewPath(controller))...)
	need := func(name, value string, most int) {
		at := field.NewPath(name)
		if value == "" {
			errs = append(errs, field.Required(at, ""))
		}
		if len(value) > most {
			errs = append(errs, field.Invalid(at, "", "can have at most "+strconv.Itoa(most)+" characters"))
		}
	}
	need("reportingInstance", e.ReportingInstance, maxEventInstance)
	need("action", e.Action, maxEventAction)
	need("reason", e.Reason, maxEventReason)
	if len(e.Message) > maxEventNote {
		errs = append(errs, field.Invalid(field.NewPath("message"), "",
			"can have at most "+strconv.Itoa(maxEventNote)+" characters"))
	}
	return errs
}
