package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func eventRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Event"), Resource: "events", Singular: "event",
		Namespaced:  true,
		ShortNames:  []string{"ev"},
		StoragePath: "events",
		New:         resources.Make[corev1.Event],
		NewList:     resources.Make[corev1.EventList],
	}
}
