package resourcequota

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/quota"
	"bonsai/pkg/apiserver/admission"
)

// Limited is what nothing may be used of unless a quota bounds it (limitedResources of ResourceQuotaConfiguration,
// apiserver.config.k8s.io/v1).
type Limited struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Resource string `json:"resource"`
	// MatchContains are parts of the names that quotas count under: "gold.storageclass" means all that is counted of
	// that class.
	MatchContains []string `json:"matchContains,omitempty"`
	// MatchScopes mean objects that they select.
	MatchScopes []corev1.ScopedResourceSelectorRequirement `json:"matchScopes,omitempty"`
}

// permitted refuses what is limited and not bounded by any of the quotas. Limited scopes bound what is created, not
// what updates bring into them.
func (p *plugin) permitted(ctx context.Context, c *claim, quotas []*corev1.ResourceQuota) error {
	var names []corev1.ResourceName
	var scopes []corev1.ScopedResourceSelectorRequirement
	var usage corev1.ResourceList
	for i := range p.limited {
		l := &p.limited[i]
		if l.APIGroup != c.resource.Group || l.Resource != c.resource.Resource {
			continue
		}
		if usage == nil {
			p.count(ctx, c)
			usage = c.delta
		}
		for _, name := range quota.Names(usage) {
			if slices.ContainsFunc(l.MatchContains, func(part string) bool {
				return strings.Contains(string(name), part)
			}) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, s := range l.MatchScopes {
			if c.attributes.Operation == admission.Create && quota.InScope(scoped(s), c.resource, c.attributes.Object) {
				scopes = append(scopes, s)
			}
		}
	}
	for _, q := range quotas {
		bounded := c.bounds(q)
		names = slices.DeleteFunc(names, func(name corev1.ResourceName) bool { return slices.Contains(bounded, name) })
		if len(bounded) > 0 {
			scopes = slices.DeleteFunc(scopes, func(s corev1.ScopedResourceSelectorRequirement) bool {
				return selects(&q.Spec, s)
			})
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		return admission.Forbid(c.attributes, "insufficient quota to consume: %s", joined(names))
	}
	if len(scopes) > 0 {
		return fmt.Errorf("insufficient quota to match these scopes: %v", scopes)
	}
	return nil
}

func scoped(s corev1.ScopedResourceSelectorRequirement) *corev1.ResourceQuotaSpec {
	return &corev1.ResourceQuotaSpec{
		ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{s}}}
}

// selects reports whether a quota, which bounds the object, does so by the scope.
func selects(q *corev1.ResourceQuotaSpec, s corev1.ScopedResourceSelectorRequirement) bool {
	if slices.Contains(q.Scopes, s.ScopeName) {
		return true
	}
	return q.ScopeSelector != nil &&
		slices.ContainsFunc(q.ScopeSelector.MatchExpressions, func(has corev1.ScopedResourceSelectorRequirement) bool {
			return has.ScopeName == s.ScopeName
		})
}
