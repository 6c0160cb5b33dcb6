package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/api/resources"
)

func clusterRoleBindingRow() resources.Row {
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), Resource: "clusterrolebindings", Singular: "clusterrolebinding",
		StoragePath: "clusterrolebindings",
		New:         resources.Make[rbacv1.ClusterRoleBinding],
		NewList:     resources.Make[rbacv1.ClusterRoleBindingList],
	}
}
