package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The messages are what kube-apiserver v1.36 answers.
func TestQuotaScopes(t *testing.T) {
	t.Parallel()
	const only = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
	const at = "spec.scopeSelector.matchExpressions"
	hard := func(name string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceName(name): resource.MustParse("1")}}
	}
	scopes := func(name string, s ...corev1.ResourceQuotaScope) corev1.ResourceQuotaSpec {
		q := hard(name)
		q.Scopes = s
		return q
	}
	selector := func(name string, r ...corev1.ScopedResourceSelectorRequirement) corev1.ResourceQuotaSpec {
		q := hard(name)
		q.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: r}
		return q
	}
	is := func(s corev1.ResourceQuotaScope, op corev1.ScopeSelectorOperator,
		values ...string) corev1.ScopedResourceSelectorRequirement {
		return corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: op, Values: values}
	}
	for name, c := range map[string]struct {
		spec corev1.ResourceQuotaSpec
		want string
	}{
		"none": {hard("services"), ""},
		"good": {scopes("pods", "BestEffort", "Terminating"), ""},
		"good selector": {selector("cpu", is("PriorityClass", "In", "x"), is("PriorityClass", "NotIn", "y"),
			is("Terminating", "Exists")), ""},
		"scope and selector": {func() corev1.ResourceQuotaSpec {
			q := selector("pods", is("NotTerminating", "Exists"))
			q.Scopes = []corev1.ResourceQuotaScope{"Terminating"}
			return q
		}(), ""},
		"unknown": {scopes("pods", "Nope"), `spec.scopes: Invalid value: ["Nope"]: unsupported scope`},
		"both ways": {scopes("pods", "BestEffort", "NotBestEffort"),
			`spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes`},
		"not of pods": {scopes("services", "Terminating"),
			`spec.scopes: Invalid value: ["Terminating"]: unsupported scope applied to resource`},
		"unknown in selector": {selector("pods", is("Nope", "In")),
			"[" + at + `.scopeName: Invalid value: "Nope": unsupported scope, ` + at +
				".values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope selector]"},
		"cpu of nothing": {selector("cpu", is("BestEffort", "Exists")),
			at + `: Invalid value: {"matchExpressions":[{"scopeName":"BestEffort","operator":"Exists"}]}: unsupported scope applied to resource`},
		"both ways in selector": {selector("pods", is("BestEffort", "Exists"), is("NotBestEffort", "Exists")),
			at + ": Invalid value: null: conflicting scopes"},
		"selected without value": {selector("pods", is("Terminating", "DoesNotExist")),
			at + `.operator: Invalid value: "DoesNotExist": ` + only},
		"value too many": {selector("pods", is("PriorityClass", "Exists", "x")),
			at + ".values: Invalid value: [\"x\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"},
		"odd operator": {selector("pods", is("Terminating", "Weird")),
			"[" + at + `.operator: Invalid value: "Weird": ` + only + ", " + at +
				`.operator: Invalid value: "Weird": not a valid selector operator]`},
	} {
		got := ""
		if errs := validateQuota(&corev1.ResourceQuota{Spec: c.spec}); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}
