package coordination

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func leaseRow() resources.Row {
	return resources.Row{
		GVK: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Resource: "leases", Singular: "lease",
		Namespaced:  true,
		StoragePath: "leases",
		New:         resources.Make[coordinationv1.Lease],
		NewList:     resources.Make[coordinationv1.LeaseList],
		Strategy: resources.Typed[*coordinationv1.Lease]{
			Validate:       validateLease,
			ValidateUpdate: func(obj, _ *coordinationv1.Lease) field.ErrorList { return validateLease(obj) },
			CreateOnUpdate: true,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Holder", coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(l *coordinationv1.Lease, now time.Time) []any {
			holder := ""
			if l.Spec.HolderIdentity != nil {
				holder = *l.Spec.HolderIdentity
			}
			return []any{l.Name, holder, resources.Age(l.CreationTimestamp, now)}
		}),
	}
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	s := &l.Spec
	if s.LeaseDurationSeconds != nil && *s.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *s.LeaseDurationSeconds, "must be greater than 0"))
	}
	if s.LeaseTransitions != nil && *s.LeaseTransitions < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *s.LeaseTransitions, "must be greater than or equal to 0"))
	}
	if s.Strategy != nil && *s.Strategy != coordinationv1.OldestEmulationVersion {
		errs = append(errs, field.NotSupported(path.Child("strategy"), *s.Strategy, []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion}))
	}
	if s.PreferredHolder != nil && *s.PreferredHolder != "" && (s.Strategy == nil || *s.Strategy == "") {
		errs = append(errs, field.Forbidden(path.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}
