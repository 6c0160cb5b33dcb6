package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func endpointsRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Endpoints"), Resource: "endpoints", Singular: "endpoints",
		Namespaced:  true,
		ShortNames:  []string{"ep"},
		StoragePath: "services/endpoints",
		New:         resources.Make[corev1.Endpoints],
		NewList:     resources.Make[corev1.EndpointsList],
	}
}
