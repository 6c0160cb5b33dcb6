package rbac

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func clusterRoleBindingRow() resources.Row {
	validate := func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
		return validateBinding(b.RoleRef, b.Subjects, false, "ClusterRole")
	}
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"), Resource: "clusterrolebindings",
		Singular:    "clusterrolebinding",
		StoragePath: "clusterrolebindings",
		New:         resources.Make[rbacv1.ClusterRoleBinding],
		Strategy: resources.Typed[*rbacv1.ClusterRoleBinding]{
			Default:  func(b *rbacv1.ClusterRoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			Validate: validate,
			ValidateUpdate: func(obj, old *rbacv1.ClusterRoleBinding) field.ErrorList {
				return append(validate(obj), sameRole(obj.RoleRef, old.RoleRef)...)
			},
			ValidateName:   validateName,
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: bindingColumns(rbacv1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"], "clusterRoleBinding"),
		Cells: resources.Cells(func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
			return bindingCells(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
		}),
	}
}
