package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func serviceAccountRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts", Singular: "serviceaccount",
		Namespaced:  true,
		ShortNames:  []string{"sa"},
		StoragePath: "serviceaccounts",
		New:         resources.Make[corev1.ServiceAccount],
		NewList:     resources.Make[corev1.ServiceAccountList],
		Subresources: []resources.Subresource{
			resources.Action("token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), "create"),
		},
	}
}
