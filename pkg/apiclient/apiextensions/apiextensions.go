// Package apiextensions gives access to the kind of apiextensions.k8s.io/v1.
package apiextensions

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"bonsai/pkg/apiclient"
)

// CustomResourceDefinitions gives access to customresourcedefinitions.
func CustomResourceDefinitions(c *apiclient.Client) *apiclient.Resource[*apiextensionsv1.CustomResourceDefinition] {
	return apiclient.NewResource(c, apiextensionsv1.SchemeGroupVersion, "customresourcedefinitions",
		&apiextensionsv1.CustomResourceDefinition{})
}
