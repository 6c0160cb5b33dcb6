package core

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Longest texts of an event in its new form.
const (
	maxEventReason   = 128
	maxEventAction   = 128
	maxEventInstance = 128
	maxEventNote     = 1024
)

// ValidateLegacyEvent checks an event written through the core group; one with an eventTime must be complete in the new form.
func ValidateLegacyEvent(e *corev1.Event) field.ErrorList {
	errs := eventNamespace(e)
	if !e.EventTime.IsZero() {
		errs = append(errs, eventFields(e, "reportingComponent", "")...)
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
	if e.EventTime.IsZero() {
		return errs
	}
	return append(errs, eventFields(e, "reportingController", "note")...)
}

// eventNamespace: an event lives where its object does; those about cluster-scoped objects in default.
func eventNamespace(e *corev1.Event) field.ErrorList {
	ns := e.InvolvedObject.Namespace
	path := field.NewPath("involvedObject", "namespace")
	switch {
	case ns == "" && e.Namespace != metav1.NamespaceDefault && e.Namespace != metav1.NamespaceSystem,
		ns != "" && ns != e.Namespace:
		return field.ErrorList{field.Invalid(path, ns, "does not match event.namespace")}
	}
	return nil
}

// eventFields checks what an event in its new form must say, and that it says it briefly. note "" is the unlimited message.
func eventFields(e *corev1.Event, controller, note string) field.ErrorList {
	var errs field.ErrorList
	if e.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath(controller), ""))
	}
	errs = append(errs, validateQualifiedName(e.ReportingController, field.NewPath(controller))...)
	need := func(name, value string, most int) {
		path := field.NewPath(name)
		if value == "" {
			errs = append(errs, field.Required(path, ""))
		}
		if len(value) > most {
			errs = append(errs, field.Invalid(path, "", "can have at most "+strconv.Itoa(most)+" characters"))
		}
	}
	need("reportingInstance", e.ReportingInstance, maxEventInstance)
	need("action", e.Action, maxEventAction)
	need("reason", e.Reason, maxEventReason)
	if len(e.Message) > maxEventNote {
		name := note
		if name == "" {
			name = "message"
		}
		errs = append(errs, field.Invalid(field.NewPath(name), "", "can have at most "+strconv.Itoa(maxEventNote)+" characters"))
	}
	return errs
}
