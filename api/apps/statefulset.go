package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"bonsai/api/resources"
)

func statefulSetRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: "statefulsets", Singular: "statefulset",
		Namespaced:   true,
		ShortNames:   []string{"sts"},
		Categories:   []string{"all"},
		StoragePath:  "statefulsets",
		New:          resources.Make[appsv1.StatefulSet],
		NewList:      resources.Make[appsv1.StatefulSetList],
		Subresources: []resources.Subresource{resources.Scale(), resources.Status(resources.Strategy{})},
	}
}
