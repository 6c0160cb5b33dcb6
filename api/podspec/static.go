package podspec

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// StaticReference returns what p refers to that neither a static pod nor its mirror may name, in the words of
// Kubernetes' messages; empty: nothing. The kubelet refuses a manifest by it, and the API server a mirror pod, so that
// a pod which runs can always be shown.
func StaticReference(p *corev1.Pod) string {
	if p.Spec.ServiceAccountName != "" || p.Spec.DeprecatedServiceAccount != "" {
		return RefServiceAccounts
	}
	var seen []string
	for r := range References(p) {
		seen = append(seen, r.Resource)
	}
	for _, resource := range []string{RefSecrets, RefConfigMaps, RefResourceClaims} {
		if slices.Contains(seen, resource) {
			return resource
		}
	}
	for i := range p.Spec.Volumes {
		if what := volumeReference(&p.Spec.Volumes[i]); what != "" {
			return what
		}
	}
	if len(seen) > 0 { // what References learns of later
		return seen[0]
	}
	return ""
}

// volumeReference returns the objects that a volume makes its node read or use, other than secrets and config maps;
// empty: none.
func volumeReference(v *corev1.Volume) string {
	switch {
	case v.Glusterfs != nil:
		return "endpoints (via glusterFS volumes)"
	case v.PersistentVolumeClaim != nil:
		return RefClaims
	case v.Ephemeral != nil:
		return RefClaims + " (via ephemeral volumes)"
	case v.CSI != nil:
		return "csidrivers (via CSI volumes)"
	case v.Projected == nil:
		return ""
	}
	for _, s := range v.Projected.Sources {
		switch {
		case s.ClusterTrustBundle != nil:
			return RefClusterTrustBundles
		case s.PodCertificate != nil:
			return "podcertificates"
		case s.ServiceAccountToken != nil:
			return RefServiceAccounts + " (via projected volumes)"
		}
	}
	return ""
}
