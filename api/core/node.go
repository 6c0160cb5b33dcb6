package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func nodeRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Node"), Resource: "nodes", Singular: "node",
		ShortNames:  []string{"no"},
		StoragePath: "minions",
		New:         resources.Make[corev1.Node],
		NewList:     resources.Make[corev1.NodeList],
		Subresources: []resources.Subresource{
			resources.Action("proxy", corev1.SchemeGroupVersion.WithKind("NodeProxyOptions"), "create", "delete", "get", "patch", "update"),
			resources.Status(resources.Strategy{}),
		},
	}
}
