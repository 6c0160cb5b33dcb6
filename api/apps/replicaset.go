package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"bonsai/api/resources"
)

func replicaSetRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), Resource: "replicasets", Singular: "replicaset",
		Namespaced:   true,
		ShortNames:   []string{"rs"},
		Categories:   []string{"all"},
		StoragePath:  "replicasets",
		New:          resources.Make[appsv1.ReplicaSet],
		NewList:      resources.Make[appsv1.ReplicaSetList],
		Subresources: []resources.Subresource{resources.Scale(), resources.Status(resources.Strategy{})},
	}
}
