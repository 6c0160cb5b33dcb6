// Package events defines the kind of the API group events.k8s.io (v1). Its events are the core group's events in
// another Go type, so this package converts between the two.
package events

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"

	"bonsai/api/core"
	"bonsai/api/resources"
)

// Rows returns the resources of the group. Events vanish after ttl.
func Rows(ttl time.Duration) []resources.Row {
	return []resources.Row{{
		GVK: eventsv1.SchemeGroupVersion.WithKind("Event"), Resource: "events", Singular: "event",
		Namespaced:  true,
		ShortNames:  []string{"ev"},
		StoragePath: "events",
		TTL:         ttl,
		Stored:      new(corev1.SchemeGroupVersion.WithKind("Event")),
		New:         resources.Make[corev1.Event],
		Versions: []resources.Version{{
			Name: eventsv1.SchemeGroupVersion.Version, New: resources.Make[eventsv1.Event],
			ToHub: resources.Convert(toCore), FromHub: resources.Convert(fromCore), FieldNames: fieldNames(),
		}},
		Strategy:   strategy(),
		FieldNames: slices.Sorted(maps.Keys(fieldNames())),
		Fields:     resources.Fields(servedFields),
		Columns:    core.EventColumns(),
		Cells:      resources.Cells(core.EventCells),
	}}
}

// fieldNames are what clients may select events by, and the stored event's names for it.
func fieldNames() map[string]string {
	return map[string]string{
		"reason":                    "reason",
		"reportingController":       "reportingComponent",
		"type":                      "type",
		"regarding.kind":            "involvedObject.kind",
		"regarding.namespace":       "involvedObject.namespace",
		"regarding.name":            "involvedObject.name",
		"regarding.uid":             "involvedObject.uid",
		"regarding.apiVersion":      "involvedObject.apiVersion",
		"regarding.resourceVersion": "involvedObject.resourceVersion",
		"regarding.fieldPath":       "involvedObject.fieldPath",
	}
}

// servedFields are a stored event's selectable fields under this group's names.
func servedFields(e *corev1.Event) fields.Set {
	stored, served := core.EventFields(e), fields.Set{}
	for name, of := range fieldNames() {
		served[name] = stored[of]
	}
	return served
}
