package core

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/resources"
)

func limitRangeRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("LimitRange"), Resource: "limitranges", Singular: "limitrange",
		Namespaced:  true,
		ShortNames:  []string{"limits"},
		StoragePath: "limitranges",
		New:         resources.Make[corev1.LimitRange],
		NewList:     resources.Make[corev1.LimitRangeList],
	}
}
