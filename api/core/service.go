package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func serviceRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Service"), Resource: "services", Singular: "service",
		Namespaced:  true,
		ShortNames:  []string{"svc"},
		Categories:  []string{"all"},
		StoragePath: "services/specs",
		New:         resources.Make[corev1.Service],
		NewList:     resources.Make[corev1.ServiceList],
		Subresources: []resources.Subresource{
			resources.Action("proxy", corev1.SchemeGroupVersion.WithKind("ServiceProxyOptions"), "create", "delete", "get", "patch", "update"),
			resources.Status(resources.Strategy{}),
		},
	}
}
