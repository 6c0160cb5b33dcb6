package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func namespaceRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: "namespaces", Singular: "namespace",
		ShortNames:         []string{"ns"},
		StoragePath:        "namespaces",
		New:                resources.Make[corev1.Namespace],
		NewList:            resources.Make[corev1.NamespaceList],
		NoDeleteCollection: true,
		Subresources: []resources.Subresource{
			{Name: "finalize", Verbs: []string{"update"}, Strategy: &resources.Strategy{}},
			resources.Status(resources.Strategy{}),
		},
	}
}
