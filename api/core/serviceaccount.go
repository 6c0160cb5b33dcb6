package core

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"bonsai/api/resources"
)

func serviceAccountRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts", Singular: "serviceaccount",
		Recheck:     resources.RecheckBoth,
		Namespaced:  true,
		ShortNames:  []string{"sa"},
		StoragePath: "serviceaccounts",
		New:         resources.Make[corev1.ServiceAccount],
		Subresources: []resources.Subresource{
			resources.Action("token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), "create"),
		},
		Strategy: resources.Typed[*corev1.ServiceAccount]{ValidateName: apivalidation.ValidateServiceAccountName, ReturnDeleted: true}.Strategy(),
		Columns:  resources.NameAndAge(),
		Cells:    resources.Cells(resources.NameAndAgeCells[*corev1.ServiceAccount]),
	}
}
