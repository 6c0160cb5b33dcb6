package batch

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/batch/indexes"
	"bonsai/api/validate"
)

// Bounds on policies, which are judged at every change of a pod.
const (
	maxPolicyRules      = 20
	maxPolicyExitCodes  = 255
	maxPolicyConditions = 20
	maxPolicyIndexes    = 64 * 1024 // bytes of text
)

func validatePodFailurePolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	at := path.Child("rules")
	names := sets.New[string]()
	for i := range s.Template.Spec.Containers {
		names.Insert(s.Template.Spec.Containers[i].Name)
	}
	for i := range s.Template.Spec.InitContainers {
		names.Insert(s.Template.Spec.InitContainers[i].Name)
	}
	rules := s.PodFailurePolicy.Rules
	var errs field.ErrorList
	if len(rules) > maxPolicyRules {
		errs = append(errs, field.TooMany(at, len(rules), maxPolicyRules))
	}
	for i := range rules {
		errs = append(errs, validateFailureRule(s, &rules[i], names, at.Index(i))...)
	}
	return errs
}

func validateFailureRule(s *batchv1.JobSpec, r *batchv1.PodFailurePolicyRule, names sets.Set[string],
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionCount,
		batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionFailJob,
		batchv1.PodFailurePolicyActionIgnore}
	at := path.Child("action")
	switch {
	case r.Action == "":
		errs = append(errs, field.Required(at, fmt.Sprintf("valid values: %q", actions)))
	case r.Action == batchv1.PodFailurePolicyActionFailIndex && s.BackoffLimitPerIndex == nil:
		errs = append(errs, field.Invalid(at, r.Action, "requires the backoffLimitPerIndex to be set"))
	case !slices.Contains(actions, r.Action):
		errs = append(errs, field.NotSupported(at, r.Action, actions))
	}
	if r.OnExitCodes != nil {
		errs = append(errs, validateExitCodes(r.OnExitCodes, names, path.Child("onExitCodes"))...)
	}
	errs = append(errs, validatePodConditions(r.OnPodConditions, path.Child("onPodConditions"))...)
	switch codes, conditions := r.OnExitCodes != nil, len(r.OnPodConditions) > 0; {
	case codes && conditions:
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"specifying both OnExitCodes and OnPodConditions is not supported"))
	case !codes && !conditions:
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"specifying one of OnExitCodes and OnPodConditions is required"))
	}
	return errs
}

func validateExitCodes(r *batchv1.PodFailurePolicyOnExitCodesRequirement, names sets.Set[string],
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	operators := []batchv1.PodFailurePolicyOnExitCodesOperator{batchv1.PodFailurePolicyOnExitCodesOpIn,
		batchv1.PodFailurePolicyOnExitCodesOpNotIn}
	if r.Operator == "" {
		errs = append(errs, field.Required(path.Child("operator"), fmt.Sprintf("valid values: %q", operators)))
	} else if !slices.Contains(operators, r.Operator) {
		errs = append(errs, field.NotSupported(path.Child("operator"), r.Operator, operators))
	}
	if r.ContainerName != nil && !names.Has(*r.ContainerName) {
		errs = append(errs, field.Invalid(path.Child("containerName"), *r.ContainerName,
			"must be one of the container or initContainer names in the pod template"))
	}
	at := path.Child("values")
	if len(r.Values) == 0 {
		errs = append(errs, field.Invalid(at, r.Values, "at least one value is required"))
	} else if len(r.Values) > maxPolicyExitCodes {
		errs = append(errs, field.TooMany(at, len(r.Values), maxPolicyExitCodes))
	}
	seen := sets.New[int32]()
	for i, v := range r.Values {
		if r.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn && v == 0 {
			errs = append(errs, field.Invalid(at.Index(i), v, "must not be 0 for the In operator"))
		}
		if seen.Has(v) {
			errs = append(errs, field.Duplicate(at.Index(i), v))
		}
		seen.Insert(v)
	}
	if !slices.IsSorted(r.Values) {
		errs = append(errs, field.Invalid(at, r.Values, "must be ordered"))
	}
	return errs
}

func validatePodConditions(patterns []batchv1.PodFailurePolicyOnPodConditionsPattern,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(patterns) > maxPolicyConditions {
		errs = append(errs, field.TooMany(path, len(patterns), maxPolicyConditions))
	}
	valid := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
	for i, p := range patterns {
		errs = append(errs, validate.QualifiedName(string(p.Type), path.Index(i).Child("type"))...)
		if p.Status == "" {
			errs = append(errs, field.Required(path.Index(i).Child("status"), fmt.Sprintf("valid values: %q", valid)))
		} else if !slices.Contains(valid, p.Status) {
			errs = append(errs, field.NotSupported(path.Index(i).Child("status"), p.Status, valid))
		}
	}
	return errs
}

func validateSuccessPolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if !Indexed(s) {
		return field.ErrorList{field.Invalid(path, s.SuccessPolicy,
			"requires indexed completion mode")}
	}
	at, rules := path.Child("rules"), s.SuccessPolicy.Rules
	var errs field.ErrorList
	if len(rules) == 0 {
		errs = append(errs, field.Required(at,
			"at least one rules must be specified when the successPolicy is specified"))
	}
	if len(rules) > maxPolicyRules {
		errs = append(errs, field.TooMany(at, len(rules), maxPolicyRules))
	}
	for i := range rules {
		errs = append(errs, validateSuccessRule(&rules[i], int(deref(s.Completions)), at.Index(i))...)
	}
	return errs
}

func validateSuccessRule(r *batchv1.SuccessPolicyRule, completions int, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		errs = append(errs, field.Required(path,
			"at least one of succeededCount or succeededIndexes must be specified"))
	}
	wanted := -1 // no number is known of indexes that cannot be read
	if text := r.SucceededIndexes; text != nil {
		at := path.Child("succeededIndexes")
		if len(*text) > maxPolicyIndexes {
			errs = append(errs, field.TooLong(at, *text, maxPolicyIndexes))
		} else if set, err := indexes.Parse(*text, completions); err != nil {
			errs = append(errs, indexesError(at, *text, "succeededIndexes", err))
		} else {
			wanted = set.Len()
		}
	}
	if r.SucceededCount == nil {
		return errs
	}
	at, n := path.Child("succeededCount"), int(*r.SucceededCount)
	if n < 0 {
		errs = append(errs, field.Invalid(at, n, "must be greater than or equal to 0"))
	}
	if n > completions {
		errs = append(errs, field.Invalid(at, n,
			fmt.Sprintf("must be less than or equal to %d (the number of specified completions)", completions)))
	}
	if wanted >= 0 && n > wanted {
		errs = append(errs, field.Invalid(at, n,
			fmt.Sprintf("must be less than or equal to %d (the number of indexes in the specified succeededIndexes field)", wanted)))
	}
	return errs
}
