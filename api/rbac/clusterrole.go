package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func clusterRoleRow() resources.Row {
	validate := func(r *rbacv1.ClusterRole) field.ErrorList {
		return append(validateRules(r.Rules, false), validateAggregation(r.AggregationRule)...)
	}
	return resources.Row{
		GVK: rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), Resource: "clusterroles", Singular: "clusterrole",
		StoragePath: "clusterroles",
		New:         resources.Make[rbacv1.ClusterRole],
		Strategy: resources.Typed[*rbacv1.ClusterRole]{
			Validate:       validate,
			ValidateUpdate: func(obj, _ *rbacv1.ClusterRole) field.ErrorList { return validate(obj) },
			ValidateName:   validateName,
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: resources.NameAndCreated(),
		Cells:   resources.Cells(resources.NameAndCreatedCells[*rbacv1.ClusterRole]),
	}
}
