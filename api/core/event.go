package core

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func eventRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Event"), Resource: "events", Singular: "event",
		Namespaced:  true,
		ShortNames:  []string{"ev"},
		StoragePath: "events",
		New:         resources.Make[corev1.Event],
		Strategy: resources.Typed[*corev1.Event]{
			Validate:       validateLegacyEvent,
			ValidateUpdate: func(obj, _ *corev1.Event) field.ErrorList { return validateLegacyEvent(obj) },
			ValidateName:   validEventName,
			CreateOnUpdate: true,
		}.Strategy(),
		FieldNames: []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
			"involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
			"reportingComponent",
			"source", "type"},
		Fields:  resources.Fields(EventFields),
		Columns: EventColumns(),
		Cells:   resources.Cells(EventCells),
	}
}

// EventFields are what events can be selected by.
func EventFields(e *corev1.Event) fields.Set {
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	o := e.InvolvedObject
	return fields.Set{
		"involvedObject.kind":            o.Kind,
		"involvedObject.namespace":       o.Namespace,
		"involvedObject.name":            o.Name,
		"involvedObject.uid":             string(o.UID),
		"involvedObject.apiVersion":      o.APIVersion,
		"involvedObject.resourceVersion": o.ResourceVersion,
		"involvedObject.fieldPath":       o.FieldPath,
		"reason":                         e.Reason,
		"reportingComponent":             e.ReportingController,
		"source":                         source,
		"type":                           e.Type,
	}
}

// EventColumns are those of both groups' events.
func EventColumns() []metav1.TableColumnDefinition {
	doc := corev1.Event{}.SwaggerDoc()
	name := resources.Wide(resources.NameColumn())
	return []metav1.TableColumnDefinition{
		resources.Column("Last Seen", doc["lastTimestamp"]),
		resources.Column("Type", doc["type"]),
		resources.Column("Reason", doc["reason"]),
		resources.Column("Object", doc["involvedObject"]),
		resources.Wide(resources.Column("Subobject", corev1.ObjectReference{}.SwaggerDoc()["fieldPath"])),
		resources.Wide(resources.Column("Source", doc["source"])),
		resources.Column("Message", doc["message"]),
		resources.Wide(resources.Column("First Seen", doc["firstTimestamp"])),
		resources.Wide(resources.Column("Count", doc["count"])),
		name,
	}
}

// EventCells are an event's cells.
func EventCells(e *corev1.Event, now time.Time) []any {
	first := resources.Age(e.FirstTimestamp, now)
	if e.FirstTimestamp.IsZero() {
		first = microAge(e.EventTime, now)
	}
	last := resources.Age(e.LastTimestamp, now)
	if e.LastTimestamp.IsZero() {
		last = first
	}
	count := e.Count
	if e.Series != nil {
		last, count = microAge(e.Series.LastObservedTime, now), e.Series.Count
	} else if count == 0 {
		count = 1
	}
	object := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name != "" {
		object += "/" + e.InvolvedObject.Name
	}
	component, host := e.Source.Component, e.Source.Host
	if component == "" {
		component = e.ReportingController
	}
	if host == "" {
		host = e.ReportingInstance
	}
	source := component
	if host != "" {
		source += ", " + host
	}
	return []any{last, e.Type, e.Reason, object, e.InvolvedObject.FieldPath, source, strings.TrimSpace(e.Message),
		first, int64(count), e.Name}
}

func microAge(t metav1.MicroTime, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(t.Time))
}
