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

	"bonsai/api/resources"
)

func resourceQuotaRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("ResourceQuota"), Resource: "resourcequotas", Singular: "resourcequota",
		Namespaced:   true,
		ShortNames:   []string{"quota"},
		StoragePath:  "resourcequotas",
		New:          resources.Make[corev1.ResourceQuota],
		NewList:      resources.Make[corev1.ResourceQuotaList],
		Strategy:     quotaStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(quotaStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
			resources.Column("Limit", "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(quotaCells),
	}
}

func quotaCells(q *corev1.ResourceQuota, now time.Time) []any {
	var requests, limits []string
	for _, name := range sortedNames(q.Status.Hard) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		word := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, word)
		} else {
			requests = append(requests, word)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), resources.Age(q.CreationTimestamp, now)}
}

func quotaStrategy() resources.Typed[*corev1.ResourceQuota] {
	return resources.Typed[*corev1.ResourceQuota]{
		ReturnDeleted: true,
		Default: func(q *corev1.ResourceQuota) {
			roundUp(q.Spec.Hard)
			roundUp(q.Status.Hard)
			roundUp(q.Status.Used)
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
		return append(validateQuotaList(obj.Status.Hard, path.Child("hard")), validateQuotaList(obj.Status.Used, path.Child("used"))...)
	}
	return s
}

func validateQuota(q *corev1.ResourceQuota) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateQuotaList(q.Spec.Hard, path.Child("hard"))
	known := []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopePriorityClass,
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeVolumeAttributesClass}
	for _, s := range q.Spec.Scopes {
		if !slices.Contains(known, s) {
			errs = append(errs, field.Invalid(path.Child("scopes"), q.Spec.Scopes, "unsupported scope"))
		}
		for _, name := range sortedNames(q.Spec.Hard) {
			if slices.Contains(known, s) && isQuotaResource(name) && !scopeCounts(s, name) {
				errs = append(errs, field.Invalid(path.Child("scopes"), q.Spec.Scopes, "unsupported scope applied to resource"))
			}
		}
	}
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(q.Spec.Scopes, pair[0]) && slices.Contains(q.Spec.Scopes, pair[1]) {
			errs = append(errs, field.Invalid(path.Child("scopes"), q.Spec.Scopes, "conflicting scopes"))
		}
	}
	return append(errs, validateScopeSelector(q.Spec.ScopeSelector, path.Child("scopeSelector", "matchExpressions"))...)
}

// scopeCounts tells whether a quota of a scope can count a resource: only pods are in scopes, and those of the scope
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

func validateScopeSelector(s *corev1.ScopeSelector, path *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for _, r := range s.MatchExpressions {
		switch r.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(path.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
			}
		case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, field.Invalid(path.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
			}
		default:
			errs = append(errs, field.Invalid(path.Child("operator"), r.Operator, "not a valid selector operator"))
		}
	}
	return errs
}

func validateQuotaList(l corev1.ResourceList, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range sortedNames(l) {
		at := path.Key(string(name))
		if !strings.HasPrefix(string(name), "count/") {
			errs = append(errs, validateResourceName(name, at)...)
			if !strings.Contains(string(name), "/") && !isQuotaResource(name) {
				errs = append(errs, field.Invalid(at, name, "must be a standard resource for quota"))
			}
		}
		errs = append(errs, ValidateQuantity(name, l[name], at)...)
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
