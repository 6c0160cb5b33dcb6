package aggregator

import (
	"cmp"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// resourcesOf is the aggregated form of a legacy list: subresources below their resource, in the order of names.
func resourcesOf(list []metav1.APIResource, group, version string) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	at := map[string]int{}
	slices.SortStableFunc(list, func(a, b metav1.APIResource) int { return cmp.Compare(a.Name, b.Name) })
	for _, r := range list {
		parent, sub, isSub := strings.Cut(r.Name, "/")
		kind := &metav1.GroupVersionKind{Group: cmp.Or(r.Group, group), Version: cmp.Or(r.Version, version),
			Kind: r.Kind}
		if r.Group == "" && r.Version != "" {
			kind.Group = "" // a kind of the core group
		}
		i, known := at[parent]
		if !known {
			scope := apidiscoveryv2.ScopeCluster
			if r.Namespaced {
				scope = apidiscoveryv2.ScopeNamespace
			}
			i = len(out)
			at[parent] = i
			// clients look into it
			out = append(out, apidiscoveryv2.APIResourceDiscovery{Resource: parent, Scope: scope,
				ResponseKind: &metav1.GroupVersionKind{}})
		}
		if isSub {
			out[i].Subresources = append(out[i].Subresources,
				apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs})
			continue
		}
		out[i].ResponseKind, out[i].SingularResource, out[i].Verbs, out[i].ShortNames, out[i].Categories = kind,
			r.SingularName, r.Verbs, r.ShortNames, r.Categories
	}
	return out
}
