package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func podTemplateRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("PodTemplate"), Resource: "podtemplates", Singular: "podtemplate",
		Namespaced:  true,
		StoragePath: "podtemplates",
		New:         resources.Make[corev1.PodTemplate],
		NewList:     resources.Make[corev1.PodTemplateList],
	}
}
