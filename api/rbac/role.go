package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func roleRow() resources.Row {
	validate := func(r *rbacv1.Role) field.ErrorList {
		return validateRules(r.Rules, true)
	}
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("Role"), Resource: "roles", Singular: "role",
		Namespaced:  true,
		StoragePath: "roles",
		New:         resources.Make[rbacv1.Role],
		Strategy: resources.Typed[*rbacv1.Role]{
			Validate:       validate,
			ValidateUpdate: func(obj, _ *rbacv1.Role) field.ErrorList { return validate(obj) },
			ValidateName:   validateName,
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: resources.NameAndCreated(),
		Cells:   resources.Cells(resources.NameAndCreatedCells[*rbacv1.Role]),
	}
}
