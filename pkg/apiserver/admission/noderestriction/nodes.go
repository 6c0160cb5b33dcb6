package noderestriction

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"bonsai/api/nodelabels"
	"bonsai/pkg/apiserver/admission"
)

// nodes: a kubelet registers its own Node and updates it, except for taints and protected labels. Without it, whoever
// holds one kubelet's credentials could remove its node's taints, or add labels by which sensitive pods choose their
// nodes, and so draw them to a node that he controls. A create has its name in the object only, hence the two sources
// of requested. A change of configSource to nil is allowed, so that old objects can be cleaned up.
//
// Unlike Kubernetes, this also keeps a node from choosing its pods' addresses, which kube-controller-manager hands out:
// every node sets routes by them, so that a new node could have the packets for another's pods led to itself.
func (p plugin) nodes(a *admission.Attributes, node string) error {
	requested := a.Name
	if now, ok := a.Object.(*corev1.Node); ok && a.Operation == admission.Create {
		requested = now.Name
		if bad := protectedChanges(now.Labels, nil); len(bad) > 0 {
			return admission.Forbid(a, "node %q is not allowed to set the following labels: %s", node,
				strings.Join(bad, ", "))
		}
		if now.Spec.ConfigSource != nil { // "pods" is Kubernetes' word
			return admission.Forbid(a, "node %q is not allowed to create pods with a non-nil configSource", node)
		}
		if now.Spec.PodCIDR != "" || len(now.Spec.PodCIDRs) > 0 {
			return admission.Forbid(a, "node %q is not allowed to set its podCIDRs", node)
		}
	}
	if requested != node {
		return admission.Forbid(a, "node %q is not allowed to modify node %q", node, requested)
	}
	if a.Operation != admission.Update {
		return nil
	}
	now, ok := a.Object.(*corev1.Node)
	old, okOld := a.OldObject.(*corev1.Node)
	if !ok || !okOld {
		return fmt.Errorf("unexpected types %T and %T", a.Object, a.OldObject)
	}
	if now.Spec.ConfigSource != nil && !equality.Semantic.DeepEqual(now.Spec.ConfigSource, old.Spec.ConfigSource) {
		return admission.Forbid(a, "node %q is not allowed to update configSource to a new non-nil configSource", node)
	}
	if !equality.Semantic.DeepEqual(now.Spec.Taints, old.Spec.Taints) {
		return admission.Forbid(a, "node %q is not allowed to modify taints", node)
	}
	if now.Spec.PodCIDR != old.Spec.PodCIDR || !equality.Semantic.DeepEqual(now.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		return admission.Forbid(a, "node %q is not allowed to set its podCIDRs", node)
	}
	if !equality.Semantic.DeepEqual(now.OwnerReferences, old.OwnerReferences) {
		return admission.Forbid(a, "node %q is not allowed to modify ownerReferences", node)
	}
	if bad := protectedChanges(now.Labels, old.Labels); len(bad) > 0 {
		return admission.Forbid(a, "is not allowed to modify labels: %s", strings.Join(bad, ", "))
	}
	return nil
}

// protectedChanges returns the protected labels that differ, sorted. A label that was added, changed or removed counts.
// Protected labels that stay as they are do not count: an administrator may have set them.
func protectedChanges(now, old map[string]string) []string {
	var bad []string
	for k, v := range now {
		if w, ok := old[k]; (!ok || v != w) && !nodelabels.MayRegister(k) {
			bad = append(bad, k)
		}
	}
	for k := range old {
		if _, ok := now[k]; !ok && !nodelabels.MayRegister(k) {
			bad = append(bad, k)
		}
	}
	slices.Sort(bad)
	return bad
}
