package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func secretRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Secret"), Resource: "secrets", Singular: "secret",
		Namespaced:  true,
		StoragePath: "secrets",
		New:         resources.Make[corev1.Secret],
		NewList:     resources.Make[corev1.SecretList],
	}
}
