package controller

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Indices by which devices, the claims on them and the pods that use these find each other.
const (
	// byResourceClaim has pods by the ResourceClaims that they use.
	byResourceClaim = "resourceclaim"
	// byPool has ResourceSlices by their pool, and claims by the pools that their devices are of.
	byPool = "pool"
)

// Pool names a pool of devices: its name is one only within its driver.
type Pool struct{ Driver, Name string }

// String is the pool as one text; neither part has a space.
func (p Pool) String() string { return p.Driver + " " + p.Name }

// PoolOf is the pool that a slice is a part of.
func PoolOf(s *resourcev1.ResourceSlice) Pool { return Pool{s.Spec.Driver, s.Spec.Pool.Name} }

func indexSliceByPool(o any) ([]string, error) {
	return []string{PoolOf(o.(*resourcev1.ResourceSlice)).String()}, nil
}

func indexClaimByPool(o any) ([]string, error) {
	a := o.(*resourcev1.ResourceClaim).Status.Allocation
	if a == nil {
		return nil, nil
	}
	at := make([]string, 0, len(a.Devices.Results))
	for _, r := range a.Devices.Results {
		at = append(at, Pool{r.Driver, r.Pool}.String())
	}
	slices.Sort(at)
	return slices.Compact(at), nil
}

// SlicesOfPool returns the cached slices of a pool, of all generations.
func SlicesOfPool(all *Informer[*resourcev1.ResourceSlice], p Pool) []*resourcev1.ResourceSlice {
	found, _ := all.store.ByIndex(byPool, p.String())
	return cast[*resourcev1.ResourceSlice](found)
}

// ClaimsOnPool returns the cached claims that have devices of a pool.
func ClaimsOnPool(claims *Informer[*resourcev1.ResourceClaim], p Pool) []*resourcev1.ResourceClaim {
	found, _ := claims.store.ByIndex(byPool, p.String())
	return cast[*resourcev1.ResourceClaim](found)
}

// ResourceClaimsOf returns the names of the ResourceClaims that a pod uses, in its namespace: those that it names,
// those that were made for it by a template, and the one for its extended resources, as far as its status tells.
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
