package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/api/resources"
)

func roleBindingRow() resources.Row {
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Resource: "rolebindings", Singular: "rolebinding",
		Namespaced:  true,
		StoragePath: "rolebindings",
		New:         resources.Make[rbacv1.RoleBinding],
		NewList:     resources.Make[rbacv1.RoleBindingList],
	}
}
