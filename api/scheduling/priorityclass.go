package scheduling

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"bonsai/api/resources"
)

func priorityClassRow() resources.Row {
	return resources.Row{
		GVK: schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"), Resource: "priorityclasses", Singular: "priorityclass",
		ShortNames:  []string{"pc"},
		StoragePath: "priorityclasses",
		New:         resources.Make[schedulingv1.PriorityClass],
		NewList:     resources.Make[schedulingv1.PriorityClassList],
	}
}
