package podspec

import (
	corev1 "k8s.io/api/core/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// ValidateTolerations checks a pod's tolerations.
func ValidateTolerations(ts []corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range ts {
		t, at := &ts[i], path.Index(i)
		if t.Key != "" {
			errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		}
		if t.Key == "" && t.Operator != corev1.TolerationOpExists {
			errs = append(errs, field.Invalid(at.Child("operator"), t.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Invalid(at.Child("effect"), t.Effect,
				"effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch t.Operator {
		case corev1.TolerationOpEqual, "":
			errs = append(errs, validate.Invalid(at.Child("operator"), t.Value,
				validation.IsValidLabelValue(t.Value))...)
		case corev1.TolerationOpExists:
			if t.Value != "" {
				errs = append(errs, field.Invalid(at.Child("operator"), t.Value,
					"value must be empty when `operator` is 'Exists'"))
			}
		default:
			known := []corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}
			// operators of a feature that is off by default
			if t.Operator == corev1.TolerationOpLt || t.Operator == corev1.TolerationOpGt {
				known = append(known, corev1.TolerationOpLt, corev1.TolerationOpGt)
			}
			errs = append(errs, field.NotSupported(at.Child("operator"), t.Operator, known))
		}
		errs = append(errs, ValidateTaintEffect(t.Effect, true, at.Child("effect"))...)
	}
	return errs
}

// ValidateTaintEffect checks the effect of a taint, or of a toleration, which may leave it out.
func ValidateTaintEffect(e corev1.TaintEffect, mayBeEmpty bool, path *field.Path) field.ErrorList {
	if mayBeEmpty && e == "" {
		return nil
	}
	valid := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}
	if e == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return validate.OneOf(path, e, valid...)
}
