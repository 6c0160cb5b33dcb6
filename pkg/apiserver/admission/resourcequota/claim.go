package resourcequota

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/quota"
	"bonsai/pkg/apiserver/admission"
)

// claim is one request's wish to use something.
type claim struct {
	attributes *admission.Attributes
	resource   schema.GroupResource
	// whole is what the object uses, delta what the request adds to that. They differ at an update.
	whole, delta corev1.ResourceList
	// err is the outcome, when the claim is settled: nil if all quotas were charged.
	err error
	// turn gets one message for a claim that had to wait: true to lead the next batch, false when it is settled.
	turn chan bool
}

func newClaim(a *admission.Attributes) *claim {
	return &claim{attributes: a, resource: a.Resource.GroupResource(), turn: make(chan bool, 1)}
}

// bounds returns the resources of q that the object counts against.
func (c *claim) bounds(q *corev1.ResourceQuota) []corev1.ResourceName {
	names := quota.Matching(c.resource, q.Status.Hard)
	if len(names) == 0 || !quota.InScope(&q.Spec, c.resource, c.attributes.Object) {
		return nil
	}
	return names
}

// wants returns how much more of q the request uses. An update that brings an object into q's scope needs all that it
// uses; q gets nothing back at once for one that leaves it, as for one that shrinks: the controller's recount sees to
// that.
func (c *claim) wants(q *corev1.ResourceQuota) corev1.ResourceList {
	names := c.bounds(q)
	if len(names) > 0 && c.updates() && !quota.InScope(&q.Spec, c.resource, c.attributes.OldObject) {
		return quota.Mask(c.whole, names)
	}
	return quota.Mask(c.delta, names)
}

// updates tells an update from a creation, also one by PUT.
func (c *claim) updates() bool {
	return c.attributes.Operation == admission.Update && stored(c.attributes.OldObject)
}

// told reports whether the request says what has happened already, as the status of a claim on a volume does: it is
// charged and not refused.
func (c *claim) told() bool { return c.attributes.Subresource == "status" }

// countable refuses an object that does not say what q needs to know of it, and any while q's own usage is not known.
func (c *claim) countable(q *corev1.ResourceQuota, names []corev1.ResourceName) error {
	if pod, ok := c.attributes.Object.(*corev1.Pod); ok {
		if err := quota.Unspecified(pod, names); err != nil {
			return admission.Forbid(c.attributes, "failed quota: %s: %w", q.Name, err)
		}
	}
	for _, name := range names {
		if _, ok := q.Status.Used[name]; !ok {
			return admission.Forbid(c.attributes, "status unknown for quota: %s, resources: %s", q.Name, joined(names))
		}
	}
	return nil
}

// charge adds the claim to used if q allows it; it returns the refusal otherwise. used is what q would have used
// before.
func (c *claim) charge(q *corev1.ResourceQuota, used corev1.ResourceList) error {
	wanted := c.wants(q)
	after := corev1.ResourceList{}
	for name, more := range wanted {
		if more.Sign() > 0 {
			sum := used[name].DeepCopy()
			sum.Add(more)
			after[name] = sum
		}
	}
	if beyond := quota.Beyond(after, q.Status.Hard); len(beyond) > 0 && !c.told() {
		return admission.Forbid(c.attributes, "exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name,
			quota.Text(quota.Mask(wanted, beyond)), quota.Text(quota.Mask(used, beyond)),
			quota.Text(quota.Mask(q.Status.Hard, beyond)))
	}
	quota.AddTo(used, wanted)
	return nil
}
