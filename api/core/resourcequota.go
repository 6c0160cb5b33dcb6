package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/quantity"
	"bonsai/api/resources"
)

func resourceQuotaRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), Resource: "resourcequotas", Singular: "resourcequota",
		Namespaced:   true,
		ShortNames:   []string{"quota"},
		StoragePath:  "resourcequotas",
		New:          resources.Make[corev1.ResourceQuota],
		Strategy:     quotaStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(quotaStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Request",
				"Request represents a minimum amount of cpu/memory that a container may consume."),
			resources.Column("Limit",
				"Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(quotaCells),
	}
}

func quotaCells(q *corev1.ResourceQuota, now time.Time) []any {
	var requests, limits []string
	for _, name := range quantity.Names(q.Status.Hard) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		word := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, word)
		} else {
			requests = append(requests, word)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "),
		resources.Age(q.CreationTimestamp, now)}
}

func quotaStrategy() resources.Typed[*corev1.ResourceQuota] {
	return resources.Typed[*corev1.ResourceQuota]{
		ReturnDeleted: true,
		Default: func(q *corev1.ResourceQuota) {
			quantity.RoundUp(q.Spec.Hard)
			quantity.RoundUp(q.Status.Hard)
			quantity.RoundUp(q.Status.Used)
		},
		PrepareCreate:  func(q *corev1.ResourceQuota) { q.Status = corev1.ResourceQuotaStatus{} },
		PrepareUpdate:  func(obj, old *corev1.ResourceQuota) { obj.Status = *old.Status.DeepCopy() },
		Validate:       validateQuota,
		ValidateUpdate: validateQuotaUpdate,
	}
}

func quotaStatusStrategy() resources.Typed[*corev1.ResourceQuota] {
	s := quotaStrategy()
	s.PrepareUpdate = func(obj, old *corev1.ResourceQuota) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = func(obj, _ *corev1.ResourceQuota) field.ErrorList {
		path := field.NewPath("status")
		return append(validateQuotaList(obj.Status.Hard, path.Child("hard")),
			validateQuotaList(obj.Status.Used, path.Child("used"))...)
	}
	return s
}

func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateQuotaList(q.Spec.Hard, path.Child("hard"))
	errs = append(errs, validateScopes(q, path.Child("scopes"))...)
	return append(errs, validateScopeSelector(q, path.Child("scopeSelector", "matchExpressions"))...)
}

func validateScopes(q *corev1.ResourceQuota, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, s := range q.Spec.Scopes {
		if !isScope(s) {
			errs = append(errs, field.Invalid(path, q.Spec.Scopes, "unsupported scope"))
		}
		if !scopeFits(s, q.Spec.Hard) {
			errs = append(errs, field.Invalid(path, q.Spec.Scopes, "unsupported scope applied to resource"))
		}
	}
	for range conflicts(q.Spec.Scopes) {
		errs = append(errs, field.Invalid(path, q.Spec.Scopes, "conflicting scopes"))
	}
	return errs
}

func isScope(s corev1.ResourceQuotaScope) bool {
	return isFlagScope(s) || s == corev1.ResourceQuotaScopePriorityClass ||
		s == corev1.ResourceQuotaScopeVolumeAttributesClass
}

// isFlagScope tells the scopes that an object is in or not, without a value to select by.
func isFlagScope(s corev1.ResourceQuotaScope) bool {
	switch s {
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return true
	}
	return false
}

// scopeFits reports whether a quota of a scope can count all of hard; what is no scope is complained of elsewhere.
func scopeFits(s corev1.ResourceQuotaScope, hard corev1.ResourceList) bool {
	return !isScope(s) || !slices.ContainsFunc(quantity.Names(hard), func(name corev1.ResourceName) bool {
		return quantity.IsQuota(name) && !scopeCounts(s, name)
	})
}

// conflicts returns the pairs of scopes that no object can be in both.
func conflicts(scopes []corev1.ResourceQuotaScope) [][2]corev1.ResourceQuotaScope {
	return slices.DeleteFunc([][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	}, func(pair [2]corev1.ResourceQuotaScope) bool {
		return !slices.Contains(scopes, pair[0]) || !slices.Contains(scopes, pair[1])
	})
}

// scopeCounts reports whether a quota of a scope can count a resource: only pods are in scopes, and those of the scope
// BestEffort have no requests to count.
func scopeCounts(s corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	if strings.Contains(string(name), "/") {
		return true
	}
	if s == corev1.ResourceQuotaScopeBestEffort {
		return name == corev1.ResourcePods
	}
	if s == corev1.ResourceQuotaScopeVolumeAttributesClass {
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
	}
	switch name {
	case corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return false
}

func validateScopeSelector(q *corev1.ResourceQuota, path *field.Path) field.ErrorList {
	if q.Spec.ScopeSelector == nil {
		return nil
	}
	var errs field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	for _, r := range q.Spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		if !isScope(r.ScopeName) {
			errs = append(errs, field.Invalid(path.Child("scopeName"), r.ScopeName, "unsupported scope"))
		}
		errs = append(errs, validateScopeOperator(r, path)...)
		if !scopeFits(r.ScopeName, q.Spec.Hard) {
			errs = append(errs, field.Invalid(path, q.Spec.ScopeSelector,
				"unsupported scope applied to resource"))
		}
	}
	for range conflicts(scopes) {
		errs = append(errs, field.Invalid(path, nil, "conflicting scopes"))
	}
	return errs
}

func validateScopeOperator(r corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if isFlagScope(r.ScopeName) && r.Operator != corev1.ScopeSelectorOpExists {
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator,
			"must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "+
				"ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			errs = append(errs, field.Required(path.Child("values"),
				"must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			errs = append(errs, field.Invalid(path.Child("values"), r.Values,
				"must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
		}
	default:
		errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
	}
	return errs
}

func validateQuotaList(l corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range quantity.Names(l) {
		at := path.Key(string(name))
		if !strings.HasPrefix(string(name), "count/") {
			errs = append(errs, quantity.ValidateName(name, at)...)
			if !strings.Contains(string(name), "/") && !quantity.IsQuota(name) {
				errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
			}
		}
		errs = append(errs, quantity.Validate(name, l[name], at)...)
	}
	return errs
}

// validateQuotaUpdate: what a quota counts cannot change.
func validateQuotaUpdate(obj, old *corev1.ResourceQuota) field.ErrorList {
	errs := validateQuota(obj)
	path := field.NewPath("spec", "scopes")
	if !apiequality.Semantic.DeepEqual(obj.Spec.Scopes, old.Spec.Scopes) {
		errs = append(errs, field.Invalid(path, obj.Spec.Scopes, apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}
