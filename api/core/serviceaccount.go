package core

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"bonsai/api/resources"
)

func serviceAccountRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ServiceAccount"), Resource: "serviceaccounts",
		Singular:    "serviceaccount",
		Namespaced:  true,
		ShortNames:  []string{"sa"},
		StoragePath: "serviceaccounts",
		New:         resources.Make[corev1.ServiceAccount],
		Subresources: []resources.Subresource{
			resources.Action("token", authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), "create"),
		},
		Strategy: resources.Typed[*corev1.ServiceAccount]{
			ValidateName:  apivalidation.ValidateServiceAccountName,
			ReturnDeleted: true,
			PrepareCreate: keepNamesOfSecrets,
			PrepareUpdate: func(obj, _ *corev1.ServiceAccount) { keepNamesOfSecrets(obj) },
		}.Strategy(),
		Columns: resources.NameAndAge(),
		Cells:   resources.Cells(resources.NameAndAgeCells[*corev1.ServiceAccount]),
	}
}

// keepNamesOfSecrets keeps only the names of an account's secrets: the secrets are in its own namespace.
func keepNamesOfSecrets(a *corev1.ServiceAccount) {
	for i := range a.Secrets {
		a.Secrets[i] = corev1.ObjectReference{Name: a.Secrets[i].Name}
	}
}
