package policy

import (
	policyv1 "k8s.io/api/policy/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// wholeSpec is a spec as Kubernetes' error about all of it shows it: its fields have no JSON names there.
type wholeSpec struct {
	MinAvailable               *intstr.IntOrString
	Selector                   *metav1.LabelSelector
	MaxUnavailable             *intstr.IntOrString
	UnhealthyPodEvictionPolicy *policyv1.UnhealthyPodEvictionPolicyType
}

func validateDisruptionBudget(b *budget) field.ErrorList {
	var errs field.ErrorList
	s, path := &b.Spec, field.NewPath("spec")
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		whole := wholeSpec{s.MinAvailable, s.Selector, s.MaxUnavailable, s.UnhealthyPodEvictionPolicy}
		errs = append(errs, field.Invalid(path, whole, "minAvailable and maxUnavailable cannot be both set"))
	}
	errs = append(errs, validateAmount(s.MinAvailable, path.Child("minAvailable"))...)
	errs = append(errs, validateAmount(s.MaxUnavailable, path.Child("maxUnavailable"))...)
	errs = append(errs, validate.LabelSelector(s.Selector, path.Child("selector"))...)
	// One that is set to nothing is not one that is left out.
	if p := s.UnhealthyPodEvictionPolicy; p != nil && *p != policyv1.AlwaysAllow && *p != policyv1.IfHealthyBudget {
		valid := []policyv1.UnhealthyPodEvictionPolicyType{policyv1.AlwaysAllow, policyv1.IfHealthyBudget}
		errs = append(errs, field.NotSupported(path.Child("unhealthyPodEvictionPolicy"), *p, valid))
	}
	return errs
}

// validateAmount checks a number of pods or a share of them.
func validateAmount(v *intstr.IntOrString, path *field.Path) field.ErrorList {
	if v == nil {
		return nil
	}
	return append(validate.IntOrPercent(*v, path), validate.AtMostAll(*v, path)...)
}

func validateDisruptionBudgetStatus(b *budget) field.ErrorList {
	s, path := &b.Status, field.NewPath("status")
	errs := metav1validation.ValidateConditions(s.Conditions, path.Child("conditions"))
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"disruptionsAllowed", s.DisruptionsAllowed},
		{"currentHealthy", s.CurrentHealthy},
		{"desiredHealthy", s.DesiredHealthy},
		{"expectedPods", s.ExpectedPods},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(n.value), path.Child(n.name))...)
	}
	return errs
}
