package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func replicationControllerRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ReplicationController"), Resource: "replicationcontrollers", Singular: "replicationcontroller",
		Namespaced:   true,
		ShortNames:   []string{"rc"},
		Categories:   []string{"all"},
		StoragePath:  "controllers",
		New:          resources.Make[corev1.ReplicationController],
		NewList:      resources.Make[corev1.ReplicationControllerList],
		Subresources: []resources.Subresource{resources.Scale(), resources.Status(resources.Strategy{})},
	}
}
