package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func configMapRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: "configmaps", Singular: "configmap",
		Namespaced:  true,
		ShortNames:  []string{"cm"},
		StoragePath: "configmaps",
		New:         resources.Make[corev1.ConfigMap],
		NewList:     resources.Make[corev1.ConfigMapList],
	}
}
