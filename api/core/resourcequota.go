package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func resourceQuotaRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), Resource: "resourcequotas", Singular: "resourcequota",
		Namespaced:   true,
		ShortNames:   []string{"quota"},
		StoragePath:  "resourcequotas",
		New:          resources.Make[corev1.ResourceQuota],
		NewList:      resources.Make[corev1.ResourceQuotaList],
		Subresources: []resources.Subresource{resources.Status(resources.Strategy{})},
	}
}
