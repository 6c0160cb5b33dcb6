package autoscaling

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	maxWindowSeconds = 3600
	maxPeriodSeconds = 1800
)

// validateAutoscaler checks an autoscaler; old is nil for a new one. A target's version without a group that was stored
// once does not stand in the way of other changes.
func validateAutoscaler(a, old *autoscaler) field.ErrorList {
	s, at := &a.Spec, field.NewPath("spec")
	errs := validateRange(s, at)
	errs = append(errs, validateReference(s.ScaleTargetRef, at.Child("scaleTargetRef"))...)
	if old == nil || old.Spec.ScaleTargetRef.APIVersion != s.ScaleTargetRef.APIVersion {
		errs = append(errs, validateTargetGroup(s.ScaleTargetRef, at.Child("scaleTargetRef", "apiVersion"))...)
	}
	for i := range s.Metrics {
		errs = append(errs, validateMetric(&s.Metrics[i], at.Child("metrics").Index(i))...)
	}
	if s.MinReplicas != nil && *s.MinReplicas == 0 && !seenWithoutPods(s.Metrics) {
		errs = append(errs, field.Forbidden(at.Child("metrics"),
			"must specify at least one Object or External metric to support scaling to zero replicas"))
	}
	if b := s.Behavior; b != nil {
		errs = append(errs, validateRules(b.ScaleUp, at.Child("behavior", "scaleUp"))...)
		errs = append(errs, validateRules(b.ScaleDown, at.Child("behavior", "scaleDown"))...)
	}
	return errs
}

func validateRange(s *autoscalingv2.HorizontalPodAutoscalerSpec, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := s.MinReplicas; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(at.Child("minReplicas"), *n, "must be greater than or equal to 0"))
	}
	most := at.Child("maxReplicas")
	switch n := s.MaxReplicas; {
	case n == 0:
		errs = append(errs, field.Required(most, ""))
	case n < 0:
		errs = append(errs, field.Invalid(most, n, "must be greater than or equal to 1"))
	}
	if s.MinReplicas != nil && s.MaxReplicas < *s.MinReplicas {
		errs = append(errs, field.Invalid(most, s.MaxReplicas, "must be greater than or equal to `minReplicas`"))
	}
	return errs
}

// seenWithoutPods reports whether a metric has a value while there are no pods.
func seenWithoutPods(metrics []autoscalingv2.MetricSpec) bool {
	for _, m := range metrics {
		if m.Type == autoscalingv2.ObjectMetricSourceType || m.Type == autoscalingv2.ExternalMetricSourceType {
			return true
		}
	}
	return false
}

func validateReference(r autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	errs := validateSegment(r.Kind, "", at.Child("kind"))
	errs = append(errs, validateSegment(r.Name, "", at.Child("name"))...)
	if _, err := schema.ParseGroupVersion(r.APIVersion); err != nil {
		errs = append(errs, field.Invalid(at.Child("apiVersion"), r.APIVersion, err.Error()))
	}
	return errs
}

// validateTargetGroup: without a group only a ReplicationController can be scaled.
func validateTargetGroup(r autoscalingv2.CrossVersionObjectReference, at *field.Path) field.ErrorList {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err == nil && gv.Group == "" && r.Kind != "ReplicationController" {
		return field.ErrorList{field.Invalid(at, r.APIVersion, "apiVersion must specify API group")}
	}
	return nil
}

// validateSegment checks what becomes a part of a path; without is what is said of an empty one.
func validateSegment(value, without string, at *field.Path) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, without)}
	}
	var errs field.ErrorList
	for _, msg := range path.IsValidPathSegmentName(value) {
		errs = append(errs, field.Invalid(at, value, msg))
	}
	return errs
}

func validateRules(r *autoscalingv2.HPAScalingRules, at *field.Path) field.ErrorList {
	if r == nil {
		return nil
	}
	var errs field.ErrorList
	if n := r.StabilizationWindowSeconds; n != nil {
		switch at := at.Child("stabilizationWindowSeconds"); {
		case *n < 0:
			errs = append(errs, field.Invalid(at, *n, "must be greater than or equal to zero"))
		case *n > maxWindowSeconds:
			errs = append(errs, field.Invalid(at, *n,
				fmt.Sprintf("must be less than or equal to %d", maxWindowSeconds)))
		}
	}
	if p := r.SelectPolicy; p != nil && *p != autoscalingv2.MaxChangePolicySelect &&
		*p != autoscalingv2.MinChangePolicySelect && *p != autoscalingv2.DisabledPolicySelect {
		errs = append(errs, field.NotSupported(at.Child("selectPolicy"), *p, []autoscalingv2.ScalingPolicySelect{
			autoscalingv2.DisabledPolicySelect, autoscalingv2.MaxChangePolicySelect,
			autoscalingv2.MinChangePolicySelect,
		}))
	}
	if len(r.Policies) == 0 {
		errs = append(errs, field.Required(at.Child("policies"), "must specify at least one Policy"))
	}
	for i, p := range r.Policies {
		errs = append(errs, validatePolicy(p, at.Child("policies").Index(i))...)
	}
	if t := r.Tolerance; t != nil && t.Sign() < 0 {
		errs = append(errs, field.Invalid(at.Child("tolerance"), t.String(), "must be greater than or equal to 0"))
	}
	return errs
}

func validatePolicy(p autoscalingv2.HPAScalingPolicy, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.Type != autoscalingv2.PodsScalingPolicy && p.Type != autoscalingv2.PercentScalingPolicy {
		errs = append(errs, field.NotSupported(at.Child("type"), p.Type,
			[]autoscalingv2.HPAScalingPolicyType{autoscalingv2.PercentScalingPolicy, autoscalingv2.PodsScalingPolicy}))
	}
	if p.Value <= 0 {
		errs = append(errs, field.Invalid(at.Child("value"), p.Value, "must be greater than zero"))
	}
	switch at := at.Child("periodSeconds"); {
	case p.PeriodSeconds <= 0:
		errs = append(errs, field.Invalid(at, p.PeriodSeconds, "must be greater than zero"))
	case p.PeriodSeconds > maxPeriodSeconds:
		errs = append(errs, field.Invalid(at, p.PeriodSeconds,
			fmt.Sprintf("must be less than or equal to %d", maxPeriodSeconds)))
	}
	return errs
}

func validatePositive(q *resource.Quantity, at *field.Path) field.ErrorList {
	if q == nil || q.Sign() > 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(at, q.String(), "must be positive")}
}

func validateStatus(s *autoscalingv2.HorizontalPodAutoscalerStatus) (errs field.ErrorList) {
	at := field.NewPath("status")
	for i := range s.Conditions {
		if g := s.Conditions[i].ObservedGeneration; g != nil {
			errs = append(errs, apivalidation.ValidateNonnegativeField(*g,
				at.Child("conditions").Index(i).Child("observedGeneration"))...)
		}
	}
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(s.CurrentReplicas),
		at.Child("currentReplicas"))...)
	return append(errs, apivalidation.ValidateNonnegativeField(int64(s.DesiredReplicas),
		at.Child("desiredReplicas"))...)
}
