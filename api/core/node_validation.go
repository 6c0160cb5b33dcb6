package core

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/quantity"
	"bonsai/api/validate"
)

func validateNode(n *corev1.Node) field.ErrorList {
	errs := validateTaints(n.Spec.Taints, field.NewPath("metadata", "taints"))
	errs = append(errs, validateNodeQuantities(n)...)
	errs = append(errs, validateDeclaredFeatures(n.Status.DeclaredFeatures,
		field.NewPath("status", "declaredFeatures"))...)
	return append(errs, validatePodCIDRs(n.Spec.PodCIDRs, field.NewPath("spec", "podCIDRs"))...)
}

// maxFeatureName is how long the name of a feature may be.
const maxFeatureName = 253

// validateDeclaredFeatures checks the names of features that the node has: sorted, each once.
func validateDeclaredFeatures(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		at := path.Index(i)
		switch {
		case len(name) > maxFeatureName:
			errs = append(errs, field.Invalid(at, name,
				fmt.Sprintf("invalid feature name %q: must be no more than %d characters", name, maxFeatureName)))
		case !featureName(name):
			errs = append(errs, field.Invalid(at, name,
				fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments "+
					"separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name)))
		}
		switch {
		case slices.Contains(names[:i], name):
			errs = append(errs, field.Duplicate(at, name))
		case i > 0 && name < names[i-1]:
			errs = append(errs, field.Invalid(at, name, "list must be sorted alphabetically"))
		}
	}
	return errs
}

// featureName reports whether s is letters and digits in segments between slashes. The first segment begins with a
// capital letter.
func featureName(s string) bool {
	for i, segment := range strings.Split(s, "/") {
		if segment == "" || i == 0 && (segment[0] < 'A' || segment[0] > 'Z') {
			return false
		}
		for _, c := range []byte(segment) {
			if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

func validatePodCIDRs(cidrs []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	six := 0
	for i, c := range cidrs {
		errs = append(errs, validation.IsValidCIDRForLegacyField(path.Index(i), c, true, nil)...)
		if p, err := netip.ParsePrefix(c); err == nil && p.Addr().Is6() {
			six++
		}
	}
	if len(cidrs) < 2 {
		return errs
	}
	if len(cidrs) > 2 || six != 1 {
		errs = append(errs, field.Invalid(path, cidrs, "may specify no more than one CIDR for each IP family"))
	}
	return errs
}

func validateNodeQuantities(n *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	for _, l := range []struct {
		name string
		list corev1.ResourceList
	}{{"capacity", n.Status.Capacity}, {"allocatable", n.Status.Allocatable}} {
		for _, name := range quantity.Names(l.list) {
			errs = append(errs, quantity.Validate(name, l.list[name], field.NewPath("status", l.name, string(name)))...)
		}
	}
	return errs
}

func validateNodeAddresses(n *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	seen := map[corev1.NodeAddress]bool{}
	for i, a := range n.Status.Addresses {
		if seen[a] {
			errs = append(errs, field.Duplicate(field.NewPath("status", "addresses").Index(i), a))
		}
		seen[a] = true
	}
	return errs
}

// validateTaints: a key has at most one taint per effect.
func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	type pair struct {
		key    string
		effect corev1.TaintEffect
	}
	seen := map[pair]bool{}
	for i := range taints {
		t, at := &taints[i], path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, at.Child("key"))...)
		errs = append(errs, validate.Invalid(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))...)
		errs = append(errs, podspec.ValidateTaintEffect(t.Effect, false, at.Child("effect"))...)
		p := pair{t.Key, t.Effect}
		if seen[p] {
			dup := field.Duplicate(at, *t)
			dup.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, dup)
			continue
		}
		seen[p] = true
	}
	return errs
}

// validateNodeUpdate: a node's address range and provider, once set, stay; the spec's taints and schedulability may
// change.
func validateNodeUpdate(obj, old *corev1.Node) field.ErrorList {
	spec := field.NewPath("spec")
	errs := append(validateNode(obj), validateNodeAddresses(obj)...)
	if len(old.Spec.PodCIDRs) > 0 && !apiequality.Semantic.DeepEqual(obj.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		errs = append(errs, field.Forbidden(spec.Child("podCIDRs"),
			"node updates may not change podCIDR except from \"\" to valid"))
	}
	if old.Spec.ProviderID != "" && obj.Spec.ProviderID != old.Spec.ProviderID {
		errs = append(errs, field.Forbidden(spec.Child("providerID"),
			"node updates may not change providerID except from \"\" to valid"))
	}
	if obj.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		errs = append(errs, field.Forbidden(spec.Child("externalID"), "may not be updated"))
	}
	if obj.Spec.ConfigSource != nil && !apiequality.Semantic.DeepEqual(obj.Spec.ConfigSource, old.Spec.ConfigSource) {
		errs = append(errs, field.Forbidden(spec.Child("configSource"), "configSource is not supported"))
	}
	return errs
}
