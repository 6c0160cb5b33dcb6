package devices

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// takeLocked takes what the claim for extended resources will get.
func (d *Devices) takeLocked(choice *Choice, n *Needs, node *corev1.Node, got *resourcev1.AllocationResult) {
	c, mappings := special(n.pod, askedOn(node, n.asks))
	got.AllocationTimestamp = &metav1.Time{Time: d.now()}
	to := chosen{allocation: got, make: c.DeepCopy()}
	to.make.Name, to.make.GenerateName = "", n.pod.Name+"-extended-resources-"
	c.Status.Allocation = got
	d.pools.count(d.taken[n.pod.UID], c)
	d.taken[n.pod.UID] = c
	choice.claims, choice.mappings = append(choice.claims, to), mappings
}

// releaseLocked gives that back while the claim is not made.
func (d *Devices) releaseLocked(to *chosen) {
	pod := specialFor(to.make)
	if c := d.taken[pod]; c != nil && c.Status.Allocation == to.allocation {
		d.pools.count(c, nil)
		delete(d.taken, pod)
	}
}

// makeSpecial makes the claim for extended resources, in the place of one that a binding which failed has left.
func (d *Devices) makeSpecial(ctx context.Context, pod *corev1.Pod, to *chosen) error {
	d.mu.Lock()
	left := d.claims[d.made[pod.UID]].seen
	d.mu.Unlock()
	if left != nil {
		if err := d.remove(ctx, left); err != nil {
			return err
		}
	}
	got, err := d.api.CreateClaim(ctx, to.make)
	if err != nil {
		return fmt.Errorf("create claim for extended resources of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	to.key, to.uid = claimKey(got.Namespace, got.Name), got.UID
	h := d.claims[to.key]
	if h.seen == nil || h.seen.UID != got.UID {
		h.seen = got // the watch may have shown it already
	}
	// What was taken for it is its own from now on: nothing is counted again.
	h.assumed = h.seen.DeepCopy()
	h.assumed.Status.Allocation = to.allocation
	d.claims[to.key], d.made[pod.UID] = h, to.key
	delete(d.taken, pod.UID)
	return nil
}

// tell writes into the pod's status which claim it is.
func (d *Devices) tell(ctx context.Context, pod *corev1.Pod, to *chosen,
	mappings []corev1.ContainerExtendedResourceRequest) error {
	d.mu.Lock()
	c := d.claims[to.key].seen
	d.mu.Unlock()
	if c == nil || c.UID != to.uid {
		return fmt.Errorf("claim %s was deleted in the meantime", to.key)
	}
	if err := d.api.TellExtendedClaim(ctx, pod,
		&corev1.PodExtendedResourceClaimStatus{ResourceClaimName: c.Name, RequestMappings: mappings}); err != nil {
		return fmt.Errorf("update pod %s/%s ExtendedResourceClaimStatus: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// unmake deletes the claim for extended resources of a pod that is not bound after all.
func (d *Devices) unmake(ctx context.Context, to *chosen) error {
	d.mu.Lock()
	c := d.claims[to.key].seen
	d.mu.Unlock()
	if to.key == "" || c == nil || c.UID != to.uid {
		return nil
	}
	return d.remove(ctx, c)
}

// remove deletes a claim with its devices. That these are free again the watch tells.
func (d *Devices) remove(ctx context.Context, c *resourcev1.ResourceClaim) error {
	uid := c.UID
	for try := 1; ; try++ {
		err := d.removeOnce(ctx, c)
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			d.mu.Lock()
			defer d.mu.Unlock()
			d.wroteLocked(claimKey(c.Namespace, c.Name), nil)
			return nil
		case !apierrors.IsConflict(err) || try == tries:
			return fmt.Errorf("deleting claim %s/%s: %w", c.Namespace, c.Name, err)
		}
		newest, err := d.api.GetClaim(ctx, c.Namespace, c.Name)
		switch {
		case apierrors.IsNotFound(err) || err == nil && newest.UID != uid:
			return nil
		case err != nil:
			return fmt.Errorf("deleting claim %s/%s: %w", c.Namespace, c.Name, err)
		}
		c = newest
	}
}

func (d *Devices) removeOnce(ctx context.Context, c *resourcev1.ResourceClaim) error {
	if slices.Contains(c.Finalizers, resourcev1.Finalizer) {
		out := c.DeepCopy()
		out.Finalizers = slices.DeleteFunc(out.Finalizers, func(f string) bool { return f == resourcev1.Finalizer })
		got, err := d.api.UpdateClaim(ctx, out)
		if err != nil {
			return err
		}
		c = got
		d.mu.Lock()
		d.wroteLocked(claimKey(c.Namespace, c.Name), got)
		d.mu.Unlock()
	}
	return d.api.DeleteClaim(ctx, c)
}
