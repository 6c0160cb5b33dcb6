package podspec

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

func validateAffinity(a *corev1.Affinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if n := a.NodeAffinity; n != nil {
		errs = append(errs, validateNodeAffinity(n, path.Child("nodeAffinity"))...)
	}
	if p := a.PodAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		errs = append(errs, validatePodTerms(p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return errs
}

// The names of the two halves of every affinity.
const (
	requiredTerms  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferredTerms = "preferredDuringSchedulingIgnoredDuringExecution"
)

func validateNodeAffinity(a *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s := a.RequiredDuringSchedulingIgnoredDuringExecution; s != nil {
		errs = append(errs, ValidateNodeSelector(s, path.Child(requiredTerms))...)
	}
	for i, t := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		at := path.Child(preferredTerms).Index(i)
		errs = append(errs, validateWeight(t.Weight, at)...)
		errs = append(errs, validateNodeTerm(&t.Preference, at.Child("preference"))...)
	}
	return errs
}

// ValidateNodeSelector checks terms that select nodes.
func ValidateNodeSelector(s *corev1.NodeSelector, path *field.Path) field.ErrorList {
	at := path.Child("nodeSelectorTerms")
	if len(s.NodeSelectorTerms) == 0 {
		return field.ErrorList{field.Required(at, "must have at least one node selector term")}
	}
	var errs field.ErrorList
	for i := range s.NodeSelectorTerms {
		errs = append(errs, validateNodeTerm(&s.NodeSelectorTerms[i], at.Index(i))...)
	}
	return errs
}

func validateNodeTerm(t *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, r := range t.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, validateNodeRequirement(&r, at)...)
		errs = append(errs, metavalidation.ValidateLabelName(r.Key, at.Child("key"))...)
		for j, v := range r.Values {
			errs = append(errs, validate.Invalid(at.Child("values").Index(j), v, validation.IsValidLabelValue(v))...)
		}
	}
	for i, r := range t.MatchFields {
		errs = append(errs, validateNodeField(&r, path.Child("matchFields").Index(i))...)
	}
	return errs
}

func validateNodeRequirement(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) == 0 {
			return field.ErrorList{field.Required(path.Child("values"),
				"must be specified when `operator` is 'In' or 'NotIn'")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			return field.ErrorList{field.Forbidden(path.Child("values"),
				"may not be specified when `operator` is 'Exists' or 'DoesNotExist'")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(r.Values) != 1 {
			return field.ErrorList{field.Required(path.Child("values"),
				"must be specified single value when `operator` is 'Lt' or 'Gt'")}
		}
	default:
		return field.ErrorList{field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator")}
	}
	return nil
}

// validateNodeField: the one field of nodes that can be selected is their name.
func validateNodeField(r *corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch r.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(r.Values) != 1 {
			errs = append(errs, field.Required(path.Child("values"),
				"must be only one value when `operator` is 'In' or 'NotIn' for node field selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	if r.Key != "metadata.name" {
		return append(errs, field.Invalid(path.Child("key"), r.Key, "not a valid field selector key"))
	}
	for i, v := range r.Values {
		errs = append(errs, validate.Invalid(path.Child("values").Index(i), v,
			apivalidation.NameIsDNSSubdomain(v, false))...)
	}
	return errs
}

func validateWeight(w int32, path *field.Path) field.ErrorList {
	if w <= 0 || w > 100 {
		return field.ErrorList{field.Invalid(path.Child("weight"), w, "must be in the range 1-100")}
	}
	return nil
}

// validatePodTerms checks the required and preferred terms of an affinity or anti-affinity to pods.
func validatePodTerms(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm,
	path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range required {
		errs = append(errs, validatePodTerm(&required[i], path.Child(requiredTerms).Index(i))...)
	}
	for i := range preferred {
		at := path.Child(preferredTerms).Index(i)
		errs = append(errs, validateWeight(preferred[i].Weight, at)...)
		errs = append(errs, validatePodTerm(&preferred[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(t *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := validate.LabelSelector(t.LabelSelector, path.Child("labelSelector"))
	errs = append(errs, validate.LabelSelector(t.NamespaceSelector, path.Child("namespaceSelector"))...)
	for _, ns := range t.Namespaces {
		errs = append(errs, validate.Invalid(path.Child("namespace"), ns,
			apivalidation.ValidateNamespaceName(ns, false))...)
	}
	errs = append(errs, validateMatchKeys(t.MatchLabelKeys, t.LabelSelector, path.Child("matchLabelKeys"))...)
	errs = append(errs, validateMatchKeys(t.MismatchLabelKeys, t.LabelSelector, path.Child("mismatchLabelKeys"))...)
	for i, k := range t.MatchLabelKeys {
		for _, other := range t.MismatchLabelKeys {
			if k == other {
				errs = append(errs, field.Invalid(path.Child("matchLabelKeys").Index(i), k,
					"exists in both matchLabelKeys and mismatchLabelKeys"))
			}
		}
	}
	if t.TopologyKey == "" {
		errs = append(errs, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(errs, metavalidation.ValidateLabelName(t.TopologyKey, path.Child("topologyKey"))...)
}

func validateMatchKeys(keys []string, s *metav1.LabelSelector, path *field.Path) field.ErrorList {
	if len(keys) == 0 {
		return nil
	}
	if s == nil {
		return field.ErrorList{field.Forbidden(path, "must not be specified when labelSelector is not set")}
	}
	var errs field.ErrorList
	for i, k := range keys {
		errs = append(errs, metavalidation.ValidateLabelName(k, path.Index(i))...)
	}
	return errs
}
