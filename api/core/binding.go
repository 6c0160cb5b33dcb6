package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func bindingRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Binding"), Resource: "bindings", Singular: "binding",
		Namespaced: true,
		New:        resources.Make[corev1.Binding],
		NotStored:  true,
	}
}
