package rbac

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func roleBindingRow() resources.Row {
	validate := func(b *rbacv1.RoleBinding) field.ErrorList {
		return validateBinding(b.RoleRef, b.Subjects, true, "Role", "ClusterRole")
	}
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), Resource: "rolebindings", Singular: "rolebinding",
		Namespaced:  true,
		StoragePath: "rolebindings",
		New:         resources.Make[rbacv1.RoleBinding],
		Strategy: resources.Typed[*rbacv1.RoleBinding]{
			Default:  func(b *rbacv1.RoleBinding) { defaultBinding(&b.RoleRef, b.Subjects) },
			Validate: validate,
			ValidateUpdate: func(obj, old *rbacv1.RoleBinding) field.ErrorList {
				return append(validate(obj), sameRole(obj.RoleRef, old.RoleRef)...)
			},
			ValidateName:   validateName,
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: bindingColumns(rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"], "roleBinding"),
		Cells: resources.Cells(func(b *rbacv1.RoleBinding, now time.Time) []any {
			return bindingCells(&b.ObjectMeta, b.RoleRef, b.Subjects, now)
		}),
	}
}
