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
		PlainFinalizers: true,
		Namespaced:      true,
		StoragePath:     "leases",
		New:             resources.Make[coordinationv1.Lease],
		Strategy: resources.Typed[*coordinationv1.Lease]{
			NeedsVersion:   true,
			PrepareCreate:  dropElection,
			PrepareUpdate:  func(obj, _ *coordinationv1.Lease) { dropElection(obj) },
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

// dropElection drops what belongs to coordinated leader election, which is not served.
func dropElection(l *coordinationv1.Lease) {
	l.Spec.Strategy, l.Spec.PreferredHolder = nil, nil
}

func validateLease(l *coordinationv1.Lease) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	s := &l.Spec
	if s.LeaseDurationSeconds != nil && *s.LeaseDurationSeconds <= 0 {
		errs = append(errs, field.Invalid(path.Child("leaseDurationSeconds"), *s.LeaseDurationSeconds,
			"must be greater than 0"))
	}
	if s.LeaseTransitions != nil && *s.LeaseTransitions < 0 {
		errs = append(errs, field.Invalid(path.Child("leaseTransitions"), *s.LeaseTransitions,
			"must be greater than or equal to 0"))
	}
	return errs
}
