package resourceclaim

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}}
	for _, f := range change {
		f(p)
	}
	return p
}

func ended(p *corev1.Pod)   { p.Status.Phase = corev1.PodSucceeded }
func onNode(p *corev1.Pod)  { p.Spec.NodeName = "n" }
func leaving(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }

func claim(change ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c"}}
	for _, f := range change {
		f(c)
	}
	return c
}

func held(c *resourcev1.ResourceClaim)      { c.Finalizers = []string{"other", resourcev1.Finalizer} }
func allocated(c *resourcev1.ResourceClaim) { c.Status.Allocation = &resourcev1.AllocationResult{} }
func deleted(c *resourcev1.ResourceClaim)   { c.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) }

func reserved(pods ...*corev1.Pod) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		for _, p := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor,
				resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: p.UID})
		}
	}
}

func ownedBy(p *corev1.Pod) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.OwnerReferences = claimFor(p, "dev", &resourcev1.ResourceClaimTemplate{}).OwnerReferences
	}
}

// TestDecide: the steps that a real kube-controller-manager v1.36.3 takes; the last consumer's going gives the devices
// back in one write.
func TestDecide(t *testing.T) {
	t.Parallel()
	a, b := pod("a"), pod("b")
	for name, c := range map[string]struct {
		claim                             *resourcev1.ResourceClaim
		left                              []*corev1.Pod
		owner                             *corev1.Pod
		writes, keeps, unprotects, remove bool
	}{
		"in use": {claim: claim(held, allocated, reserved(a)), left: []*corev1.Pod{a}},
		"one of two left": {claim: claim(held, allocated, reserved(a, b)), left: []*corev1.Pod{b},
			writes: true, keeps: true},
		"the last one left":           {claim: claim(held, allocated, reserved(a)), writes: true, unprotects: true},
		"of another allocator":        {claim: claim(allocated, reserved(a)), writes: true, keeps: true},
		"allocated, not yet reserved": {claim: claim(held, allocated)},
		"about to be allocated":       {claim: claim(held)},
		"unused, deleted":             {claim: claim(held, allocated, deleted), writes: true, unprotects: true},
		"empty, deleted":              {claim: claim(held, deleted), unprotects: true},
		"in use, deleted":             {claim: claim(held, allocated, deleted, reserved(a)), left: []*corev1.Pod{a}},
		"of a pod that waits":         {claim: claim(ownedBy(a)), owner: a},
		"of a pod at its end":         {claim: claim(ownedBy(a)), owner: pod("a", ended), remove: true},
		"of an ended pod, with device": {claim: claim(held, allocated, ownedBy(a)), owner: pod("a", ended),
			writes: true, unprotects: true},
		"of an ended pod, deleted": {claim: claim(ownedBy(a), deleted), owner: pod("a", ended)},
		"of a pod that never ran":  {claim: claim(ownedBy(a)), owner: pod("a", leaving), remove: true},
		"of a pod that still runs": {claim: claim(ownedBy(a)), owner: pod("a", leaving, onNode)},
		"of a pod's namesake":      {claim: claim(ownedBy(b)), owner: a, remove: true},
		"of a pod that is gone":    {claim: claim(ownedBy(a))},
		"of an ended pod, used by b": {claim: claim(held, allocated, ownedBy(a), reserved(b)), left: []*corev1.Pod{b},
			owner: pod("a", ended)},
	} {
		var left []resourcev1.ResourceClaimConsumerReference
		if len(c.left) > 0 {
			left = claim(reserved(c.left...)).Status.ReservedFor
		}
		before := c.claim.DeepCopy()
		got := decide(c.claim, left, c.owner)
		if (got.status != nil) != c.writes || got.unprotect != c.unprotects || got.remove != c.remove {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if got.status != nil && ((got.status.Status.Allocation != nil) != c.keeps ||
			!slices.Equal(got.status.Status.ReservedFor, left)) {
			t.Errorf("%s: writes %+v", name, got.status.Status)
		}
		if before.Status.Allocation == nil != (c.claim.Status.Allocation == nil) ||
			len(before.Status.ReservedFor) != len(c.claim.Status.ReservedFor) {
			t.Errorf("%s: the cached claim was changed", name)
		}
	}
}

// TestReserve: only claims that are allocated are reserved, and only for pods that somebody else sent to their node.
func TestReserve(t *testing.T) {
	t.Parallel()
	full := claim(allocated, func(c *resourcev1.ResourceClaim) {
		c.Status.ReservedFor = make([]resourcev1.ResourceClaimConsumerReference,
			resourcev1.ResourceClaimReservedForMaxSize)
	})
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		claim *resourcev1.ResourceClaim
		want  bool
	}{
		"on its node":        {pod("a", onNode), claim(allocated), true},
		"beside another":     {pod("a", onNode), claim(allocated, reserved(pod("b"))), true},
		"waits for its node": {pod("a"), claim(allocated), false},
		"not allocated":      {pod("a", onNode), claim(), false},
		"reserved already":   {pod("a", onNode), claim(allocated, reserved(pod("a"))), false},
		"at its end":         {pod("a", onNode, ended), claim(allocated), false},
		"claim is going":     {pod("a", onNode), claim(allocated, deleted), false},
		"full":               {pod("a", onNode), full, false},
	} {
		got := reserve(c.pod, c.claim)
		if (got != nil) != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got != nil {
			if last := got.Status.ReservedFor[len(got.Status.ReservedFor)-1]; last.UID != c.pod.UID ||
				last.Resource != "pods" || last.Name != "a" ||
				len(got.Status.ReservedFor) != len(c.claim.Status.ReservedFor)+1 {
				t.Errorf("%s: %+v", name, got.Status.ReservedFor)
			}
		}
	}
}
