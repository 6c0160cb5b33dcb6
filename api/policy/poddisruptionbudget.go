package policy

import (
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	pathsegment "k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

type budget = policyv1.PodDisruptionBudget

func disruptionBudgetRow() resources.Row {
	return resources.Row{
		GVK: policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), Resource: "poddisruptionbudgets",
		Singular:        "poddisruptionbudget",
		PlainFinalizers: true,
		Namespaced:      true,
		ShortNames:      []string{"pdb"},
		StoragePath:     "poddisruptionbudgets",
		New:             resources.Make[budget],
		Strategy:        disruptionBudgetStrategy().Strategy(),
		Subresources:    []resources.Subresource{resources.Status(disruptionBudgetStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Min Available", "The minimum number of pods that must be available."),
			resources.Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
			resources.IntColumn("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(b *budget, now time.Time) []any {
			return []any{b.Name, amountText(b.Spec.MinAvailable), amountText(b.Spec.MaxUnavailable),
				int64(b.Status.DisruptionsAllowed),
				resources.Age(b.CreationTimestamp, now)}
		}),
	}
}

func amountText(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
}

func disruptionBudgetStrategy() resources.Typed[*budget] {
	return resources.Typed[*budget]{
		NeedsVersion:   true,
		ValidateName:   pathsegment.ValidatePathSegmentName, // as Kubernetes, whose rules of the kind look at no name
		PrepareCreate:  func(b *budget) { b.Status = policyv1.PodDisruptionBudgetStatus{} },
		PrepareUpdate:  func(obj, old *budget) { obj.Status = *old.Status.DeepCopy() },
		Validate:       validateDisruptionBudget,
		ValidateUpdate: func(obj, _ *budget) field.ErrorList { return validateDisruptionBudget(obj) },
		SpecChanged:    func(obj, old *budget) bool { return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec) },
	}
}

func disruptionBudgetStatusStrategy() resources.Typed[*budget] {
	s := disruptionBudgetStrategy()
	s.PrepareUpdate = func(obj, old *budget) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = func(obj, _ *budget) field.ErrorList { return validateDisruptionBudgetStatus(obj) }
	s.SpecChanged = nil
	return s
}
