package controller

import corev1 "k8s.io/api/core/v1"

// byResourceClaim has pods by the ResourceClaims that they use.
const byResourceClaim = "resourceclaim"

// ResourceClaimsOf returns the names of the ResourceClaims that a pod uses, in its namespace: those that it names, those that were made
// for it by a template, and the one for its extended resources, as far as its status tells.
func ResourceClaimsOf(p *corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	for _, c := range p.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			names = append(names, *c.ResourceClaimName)
		}
	}
	if x := p.Status.ExtendedResourceClaimStatus; x != nil {
		names = append(names, x.ResourceClaimName)
	}
	return names
}

func indexPodByResourceClaim(o any) ([]string, error) {
	var at []string
	p := o.(*corev1.Pod)
	for _, name := range ResourceClaimsOf(p) {
		at = append(at, Key{Namespace: p.Namespace, Name: name}.String())
	}
	return at, nil
}

// PodsOfResourceClaim returns the cached pods that use a ResourceClaim, whatever their state.
func PodsOfResourceClaim(pods *Informer[*corev1.Pod], claim Key) []*corev1.Pod {
	all, _ := pods.store.ByIndex(byResourceClaim, claim.String())
	return cast[*corev1.Pod](all)
}
