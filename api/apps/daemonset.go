package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"bonsai/api/resources"
)

func daemonSetRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("DaemonSet"), Resource: "daemonsets", Singular: "daemonset",
		Namespaced:   true,
		ShortNames:   []string{"ds"},
		Categories:   []string{"all"},
		StoragePath:  "daemonsets",
		New:          resources.Make[appsv1.DaemonSet],
		NewList:      resources.Make[appsv1.DaemonSetList],
		Subresources: []resources.Subresource{resources.Status(resources.Strategy{})},
	}
}
