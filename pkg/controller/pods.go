package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodCondition returns the pod's condition of a type, or nil.
func PodCondition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// PodReady reports whether the pod's Ready condition is true.
func PodReady(p *corev1.Pod) bool {
	c := PodCondition(p, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// PodTerminal reports whether the pod has run to its end.
func PodTerminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// PodActive reports whether the pod is neither at its end nor being deleted.
func PodActive(p *corev1.Pod) bool { return !PodTerminal(p) && p.DeletionTimestamp == nil }

// PodAvailable reports whether the pod has been ready for minReady, and if it is ready but not for that long yet, how
// much is missing (else 0).
func PodAvailable(p *corev1.Pod, minReady time.Duration, now time.Time) (bool, time.Duration) {
	c := PodCondition(p, corev1.PodReady)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	if c.LastTransitionTime.IsZero() {
		return false, 0
	}
	missing := minReady - now.Sub(c.LastTransitionTime.Time)
	return missing <= 0, max(missing, 0)
}

// NodeCondition returns the node's condition of a type, or nil.
func NodeCondition(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// ClaimOf is the name of the claim behind a volume of a pod: one in its namespace that it names, or the one that is
// made for it. "" for all other volumes.
func ClaimOf(p *corev1.Pod, v *corev1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.Ephemeral != nil:
		return p.Name + "-" + v.Name
	}
	return ""
}

// ResourceClaimsOf returns the names of the ResourceClaims that a pod uses, in its namespace: those that its spec
// names, and from its status those that were made from templates and the one for extended resources.
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
