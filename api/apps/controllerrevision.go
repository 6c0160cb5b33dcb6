package apps

import (
	appsv1 "k8s.io/api/apps/v1"

	"bonsai/api/resources"
)

func controllerRevisionRow() resources.Row {
	return resources.Row{
		GVK: appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), Resource: "controllerrevisions", Singular: "controllerrevision",
		Namespaced:  true,
		StoragePath: "controllerrevisions",
		New:         resources.Make[appsv1.ControllerRevision],
		NewList:     resources.Make[appsv1.ControllerRevisionList],
	}
}
