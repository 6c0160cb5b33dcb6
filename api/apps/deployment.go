package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"bonsai/api/resources"
)

func deploymentRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("Deployment"), Resource: "deployments", Singular: "deployment",
		Namespaced:   true,
		ShortNames:   []string{"deploy"},
		Categories:   []string{"all"},
		StoragePath:  "deployments",
		New:          resources.Make[appsv1.Deployment],
		NewList:      resources.Make[appsv1.DeploymentList],
		Subresources: []resources.Subresource{resources.Scale(), resources.Status(resources.Strategy{})},
	}
}
