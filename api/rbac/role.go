package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"bonsai/api/resources"
)

func roleRow() resources.Row {
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("Role"), Resource: "roles", Singular: "role",
		Namespaced:  true,
		StoragePath: "roles",
		New:         resources.Make[rbacv1.Role],
		NewList:     resources.Make[rbacv1.RoleList],
	}
}
