package devices

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// API writes what was chosen. A conflict says that the claim has changed since it was seen. What is returned is the
// claim as stored.
type API interface {
	// UpdateClaim writes what is not status, UpdateClaimStatus writes the status.
	UpdateClaim(ctx context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error)
	UpdateClaimStatus(ctx context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error)
	// GetClaim reads the newest state.
	GetClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error)
	CreateClaim(ctx context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error)
	// DeleteClaim deletes this claim, and no other of its name.
	DeleteClaim(ctx context.Context, c *resourcev1.ResourceClaim) error
	// TellExtendedClaim writes into a pod's status which claim was made for its extended resources, if it is still the
	// same pod.
	TellExtendedClaim(ctx context.Context, pod *corev1.Pod, s *corev1.PodExtendedResourceClaimStatus) error
}

// Choice is what the claims of a pod get on a node.
type Choice struct {
	claims []chosen
	// waits: the devices of a claim that was allocated before are not ready yet.
	waits bool
	// mappings say whose the requests are of the claim that is to be made for extended resources; none: there is no
	// such claim.
	mappings []corev1.ContainerExtendedResourceRequest
}

// None reports whether there is nothing to write.
func (choice *Choice) None() bool { return len(choice.claims) == 0 }

// chosen is a claim of the pod, by namespace/name. allocation is what it is to get, nil if it is allocated already.
// reserved means that the reservation for the pod is written.
type chosen struct {
	key        string
	uid        types.UID
	allocation *resourcev1.AllocationResult
	reserved   bool
	// make is the claim to be made for extended resources, nil if it is one that is there. key and uid are empty until
	// it is.
	make *resourcev1.ResourceClaim
	// hopeless: its devices will not become ready. Others may.
	hopeless bool
}

// Reserve chooses for the claims of a pod what they get on a node, and takes it: no other pod gets it until Release.
func (d *Devices) Reserve(pod *model.PodInfo, node *corev1.Node, timeout time.Duration) (*Choice, *framework.Status) {
	n, st := d.Needs(pod)
	if st != nil {
		return nil, st
	}
	got, st := n.On(node, timeout)
	if st != nil {
		return nil, st
	}
	choice := &Choice{}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range n.had {
		choice.claims = append(choice.claims, chosen{key: claimKey(c.Namespace, c.Name), uid: c.UID})
		u := unreadyDevices(c)
		choice.waits = choice.waits || u.waits || u.failed != ""
	}
	for i, c := range n.wanted {
		key := claimKey(c.Namespace, c.Name)
		got[i].AllocationTimestamp = &metav1.Time{Time: d.now()}
		out := c.DeepCopy()
		out.Status.Allocation = &got[i]
		h := d.claims[key]
		d.pools.count(h.now(), out)
		h.assumed = out
		d.claims[key] = h
		choice.claims = append(choice.claims, chosen{key: key, uid: c.UID, allocation: &got[i]})
	}
	if len(got) > len(n.wanted) {
		d.takeLocked(choice, n, node, &got[len(n.wanted)])
	}
	return choice, nil
}

// Release gives back what Reserve took, as far as it is not written.
func (d *Devices) Release(choice *Choice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range choice.claims {
		if c.make != nil && c.key == "" {
			d.releaseLocked(&c)
			continue
		}
		h := d.claims[c.key]
		if c.allocation != nil && h.assumed != nil && h.assumed.Status.Allocation == c.allocation {
			d.pools.count(h.assumed, h.seen)
			d.claims[c.key] = held{seen: h.seen}
		}
	}
}

// tries is how often a claim is written that others change meanwhile.
const tries = 5

// Bind writes a choice: the claims are allocated, and reserved for the pod.
func (d *Devices) Bind(ctx context.Context, pod *corev1.Pod, choice *Choice) error {
	for i := range choice.claims {
		to := &choice.claims[i]
		if to.make != nil {
			if err := d.makeSpecial(ctx, pod, to); err != nil {
				return err
			}
		}
		if err := d.bind(ctx, pod, to); err != nil {
			return err
		}
		if to.make != nil {
			if err := d.tell(ctx, pod, to, choice.mappings); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Devices) bind(ctx context.Context, pod *corev1.Pod, to *chosen) error {
	d.mu.Lock()
	c := d.claims[to.key].seen
	d.mu.Unlock()
	for try := 1; ; try++ {
		if c == nil || c.UID != to.uid {
			return fmt.Errorf("claim %s was deleted in the meantime", to.key)
		}
		got, err := d.writeClaim(ctx, pod, c, to)
		if err == nil {
			d.mu.Lock()
			d.wroteLocked(to.key, got)
			d.mu.Unlock()
			to.reserved = true
			return nil
		}
		if !apierrors.IsConflict(err) || try == tries {
			return fmt.Errorf("updating claim %s: %w", to.key, err)
		}
		if c, err = d.api.GetClaim(ctx, c.Namespace, c.Name); err != nil {
			return fmt.Errorf("updating claim %s: %w", to.key, err)
		}
	}
}

// writeClaim writes one claim, on top of the state c. The finalizer comes before the devices: they must not be lost
// with the claim.
func (d *Devices) writeClaim(ctx context.Context, pod *corev1.Pod, c *resourcev1.ResourceClaim,
	to *chosen) (*resourcev1.ResourceClaim, error) {
	has, mine := c.Status.Allocation, resourceclaim.IsReservedForPod(pod, c, false)
	switch {
	case c.DeletionTimestamp != nil:
		return nil, fmt.Errorf("claim %s got deleted in the meantime", to.key)
	case to.allocation == nil && has == nil:
		return nil, fmt.Errorf("claim %s got deallocated in the meantime", to.key)
	case to.allocation != nil && has != nil &&
		!(mine && equality.Semantic.DeepEqual(has.Devices.Results, to.allocation.Devices.Results)):
		return nil, fmt.Errorf("claim %s got allocated elsewhere in the meantime", to.key)
	case mine:
		return c, nil
	}
	if to.allocation != nil && !slices.Contains(c.Finalizers, resourcev1.Finalizer) {
		out := c.DeepCopy()
		out.Finalizers = append(out.Finalizers, resourcev1.Finalizer)
		var err error
		if c, err = d.api.UpdateClaim(ctx, out); err != nil {
			return nil, err
		}
	}
	out := c.DeepCopy()
	if to.allocation != nil {
		out.Status.Allocation = to.allocation
	}
	out.Status.ReservedFor = append(out.Status.ReservedFor,
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	return d.api.UpdateClaimStatus(ctx, out)
}

// Unreserve removes the reservations for a pod that Bind wrote. The claims keep their allocations, because the next try
// may use them, except an allocation that will not become ready and that no other pod has reserved.
func (d *Devices) Unreserve(ctx context.Context, pod *corev1.Pod, choice *Choice) error {
	for i := range choice.claims {
		to := &choice.claims[i]
		if to.make != nil {
			if err := d.unmake(ctx, to); err != nil {
				return err
			}
			continue
		}
		if !to.reserved {
			continue
		}
		d.mu.Lock()
		c := d.claims[to.key].seen
		d.mu.Unlock()
		if c == nil || c.UID != to.uid || !resourceclaim.IsReservedForPod(pod, c, false) {
			continue
		}
		out := c.DeepCopy()
		out.Status.ReservedFor = slices.DeleteFunc(out.Status.ReservedFor,
			func(r resourcev1.ResourceClaimConsumerReference) bool {
				return r.UID == pod.UID
			})
		if to.hopeless && len(out.Status.ReservedFor) == 0 {
			out.Status.Allocation, out.Status.Devices = nil, nil
		}
		if err := d.update(ctx, out); err != nil {
			return err
		}
		to.reserved = false
	}
	return nil
}

// update writes a claim's status, and sees what came of it.
func (d *Devices) update(ctx context.Context, c *resourcev1.ResourceClaim) error {
	got, err := d.api.UpdateClaimStatus(ctx, c)
	if err != nil {
		return fmt.Errorf("updating claim %s/%s: %w", c.Namespace, c.Name, err)
	}
	d.mu.Lock()
	d.wroteLocked(claimKey(c.Namespace, c.Name), got)
	d.mu.Unlock()
	return nil
}

// Deallocate gives back the devices of one of the pod's claims that no other pod has reserved, if there is such a
// claim: it may get others on another node. It reports whether there was one.
func (d *Devices) Deallocate(ctx context.Context, pod *corev1.Pod, n *Needs) (bool, error) {
	if n.left != nil {
		return true, d.remove(ctx, n.left)
	}
	for _, c := range n.had {
		others := slices.ContainsFunc(c.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
			return r.UID != pod.UID
		})
		if others || len(c.Status.ReservedFor) > 1 {
			continue
		}
		out := c.DeepCopy()
		out.Status.Allocation, out.Status.ReservedFor = nil, nil
		return true, d.update(ctx, out)
	}
	return false, nil
}
