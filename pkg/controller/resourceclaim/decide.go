package resourceclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
)

// step is what brings a claim closer to what its users leave of it; the next one follows from what it has become.
type step struct {
	// status is the claim whose status is to be written; nil: none.
	status *resourcev1.ResourceClaim
	// unprotect says that the claim, after that, is to lose the finalizer that kept it while it had devices.
	unprotect bool
	// remove means that the claim will not be used again, and is deleted.
	remove bool
}

// over reports whether a pod uses its claims no longer: it has ended, or is going and never had a node.
func over(p *corev1.Pod) bool {
	return controller.PodTerminal(p) || p.DeletionTimestamp != nil && p.Spec.NodeName == ""
}

// decide returns what to do about a claim when only the consumers in left still exist. owner is the pod that the
// claim's owner reference names, nil if it does not exist: then the garbage collector deletes the claim.
//
// Consumers that are gone are removed. With the last one, in the same write, the claim gives its devices back; then it
// loses its finalizer; then it is deleted, if it was made for a pod that no longer needs it. A claim without a
// reservation that is not being deleted keeps its finalizer and its allocation: the scheduler adds the finalizer before
// it allocates, and may reserve later.
func decide(c *resourcev1.ResourceClaim, left []resourcev1.ResourceClaimConsumerReference, owner *corev1.Pod) step {
	held := slices.Contains(c.Finalizers, resourcev1.Finalizer)
	ours := metav1.GetControllerOf(c)
	forPod := ours != nil && ours.APIVersion == "v1" && ours.Kind == "Pod"
	unneeded := forPod && owner != nil && (owner.UID != ours.UID || over(owner))
	switch {
	case len(left) < len(c.Status.ReservedFor):
		return step{status: giveBack(c, left, held), unprotect: len(left) == 0 && held}
	case len(left) > 0:
		return step{}
	case held && (c.DeletionTimestamp != nil || unneeded):
		do := step{unprotect: true}
		if c.Status.Allocation != nil {
			do.status = giveBack(c, nil, held)
		}
		return do
	}
	return step{remove: unneeded && c.DeletionTimestamp == nil}
}

// giveBack is the claim with only these consumers; without any it gives back what the scheduler allocated.
func giveBack(c *resourcev1.ResourceClaim, left []resourcev1.ResourceClaimConsumerReference,
	held bool) *resourcev1.ResourceClaim {
	out := c.DeepCopy()
	out.Status.ReservedFor = left
	if len(left) == 0 && held {
		out.Status.Allocation = nil
	}
	return out
}

// reserve returns the claim with a reservation for a pod that has a node without the scheduler having reserved it, nil
// if it needs none or cannot have one: only who schedules allocates.
func reserve(p *corev1.Pod, c *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	if p.Spec.NodeName == "" || over(p) || c.DeletionTimestamp != nil || c.Status.Allocation == nil ||
		resourceclaim.IsReservedForPod(p, c, false) ||
		len(c.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize {
		return nil
	}
	out := c.DeepCopy()
	out.Status.ReservedFor = append(out.Status.ReservedFor,
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
	return out
}

// claimFor is the claim that a template gives a pod under one of its claims' names.
func claimFor(p *corev1.Pod, name string, t *resourcev1.ResourceClaimTemplate) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, GenerateName: p.Name + "-" + name + "-", Labels: t.Spec.Labels,
		Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: ptr.To(true)}},
	}, Spec: t.Spec.Spec}
	for k, v := range t.Spec.Annotations {
		c.Annotations[k] = v
	}
	c.Annotations[resourcev1.PodResourceClaimAnnotation] = name
	return c
}

// source is where a claim comes from, in the words of the metrics.
func source(c *resourcev1.ResourceClaim) string {
	switch {
	case c.Annotations[resourcev1.PodResourceClaimAnnotation] != "":
		return "resource_claim_template"
	case c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true":
		return "extended_resource"
	}
	return ""
}

// admin reports whether a claim asks for administrative access to devices.
func admin(s *resourcev1.ResourceClaimSpec) bool {
	return slices.ContainsFunc(s.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly != nil && ptr.Deref(r.Exactly.AdminAccess, false)
	})
}
