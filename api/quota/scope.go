package quota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/podspec"
)

// InScope reports whether q is about obj, an object of gr: it has no scopes, or obj is a pod, or a
// claim on a volume, that all of them match.
func InScope(q *corev1.ResourceQuotaSpec, gr schema.GroupResource, obj runtime.Object) bool {
	all := selectors(q)
	if len(all) == 0 {
		return true
	}
	return !slices.ContainsFunc(all, func(s corev1.ScopedResourceSelectorRequirement) bool {
		switch o := obj.(type) {
		case *corev1.Pod:
			return !isPods(gr) || !matches(s, o)
		case *corev1.PersistentVolumeClaim:
			return !isClaims(gr) || !matchesClaim(s, o)
		}
		return true
	})
}

// selectors are the scopes of q in one form.
func selectors(q *corev1.ResourceQuotaSpec) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, s := range q.Scopes {
		out = append(out, corev1.ScopedResourceSelectorRequirement{ScopeName: s,
			Operator: corev1.ScopeSelectorOpExists})
	}
	if q.ScopeSelector != nil {
		out = append(out, q.ScopeSelector.MatchExpressions...)
	}
	return out
}

func matches(s corev1.ScopedResourceSelectorRequirement, p *corev1.Pod) bool {
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return ends(p)
	case corev1.ResourceQuotaScopeNotTerminating:
		return !ends(p)
	case corev1.ResourceQuotaScopeBestEffort:
		return podspec.QOSClass(p) == corev1.PodQOSBestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return podspec.QOSClass(p) != corev1.PodQOSBestEffort
	case corev1.ResourceQuotaScopePriorityClass:
		return ofClass(s, p.Spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return crossesNamespaces(p)
	}
	return false
}

// ends reports whether the pod is to end by itself.
func ends(p *corev1.Pod) bool {
	return p.Spec.ActiveDeadlineSeconds != nil && *p.Spec.ActiveDeadlineSeconds >= 0
}

// ofClass reads the operators as those of label selectors: what is not there is in no set.
func ofClass(s corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch s.Operator {
	case corev1.ScopeSelectorOpExists:
		return class != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpIn:
		return class != "" && slices.Contains(s.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return class == "" || !slices.Contains(s.Values, class)
	}
	return false
}

// crossesNamespaces reports whether a pod's affinity looks at pods of other namespaces.
func crossesNamespaces(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	if a == nil {
		return false
	}
	var required []corev1.PodAffinityTerm
	var preferred []corev1.WeightedPodAffinityTerm
	if a.PodAffinity != nil {
		required = append(required, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	if a.PodAntiAffinity != nil {
		required = append(required, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution...)
		preferred = append(preferred, a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution...)
	}
	for _, w := range preferred {
		required = append(required, w.PodAffinityTerm)
	}
	return slices.ContainsFunc(required, func(t corev1.PodAffinityTerm) bool {
		return len(t.Namespaces) > 0 || t.NamespaceSelector != nil
	})
}
