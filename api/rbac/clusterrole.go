package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/api/resources"
)

func clusterRoleRow() resources.Row {
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Resource: "clusterroles", Singular: "clusterrole",
		StoragePath: "clusterroles",
		New:         resources.Make[rbacv1.ClusterRole],
		NewList:     resources.Make[rbacv1.ClusterRoleList],
	}
}
