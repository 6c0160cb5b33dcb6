package volumes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// API writes what was chosen. A conflict says that the object has changed since it was seen. What is returned is the
// object as stored.
type API interface {
	// BindVolume writes the claim that a volume names, and that it was chosen.
	BindVolume(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error)
	// SelectNode writes the node that a volume is to be provisioned for.
	SelectNode(ctx context.Context, c *corev1.PersistentVolumeClaim, node string) (*corev1.PersistentVolumeClaim, error)
}

// Reserve chooses for the claims of a pod what they get on a node, and takes it: no other pod gets it until Release.
// Reasons refuse the node.
//
// The scheduling goroutine calls it once a node is chosen. Needs are looked at again under the lock, because volumes
// may have changed since the filters ran. From then on the chosen volumes are assumed: later pods of the same class do
// not see them as free.
func (v *Volumes) Reserve(pod *model.PodInfo, node *corev1.Node) (*Choice, *framework.Status) {
	v.mu.Lock()
	defer v.mu.Unlock()
	n, st := v.needsLocked(pod)
	if st != nil {
		return nil, st
	}
	choice, reasons := n.onLocked(node)
	if len(reasons) > 0 {
		return nil, framework.NewStatus(framework.UnschedulableAndUnresolvable, reasons...)
	}
	for i := range choice.Static {
		b := &choice.Static[i]
		h := v.volumes[b.Volume.Name]
		before := h.now()
		b.Volume, _ = volumebinding.Bind(b.Volume, b.Claim)
		h.assumed, h.ahead = b.Volume, true
		v.volumes[b.Volume.Name] = h
		v.indexLocked(before, b.Volume)
	}
	for i, c := range choice.Provision {
		if _, is := c.Annotations[volumebinding.SelectedNode]; is {
			continue
		}
		out := c.DeepCopy()
		out.Annotations = maps.Clone(c.Annotations)
		metav1.SetMetaDataAnnotation(&out.ObjectMeta, volumebinding.SelectedNode, node.Name)
		key := claimKey(c.Namespace, c.Name)
		h := v.claims[key]
		h.assumed, h.ahead = out, true
		v.claims[key] = h
		choice.Provision[i] = out
	}
	return choice, nil
}

// Release gives back what Reserve took, as far as it is not written yet.
//
// It compares pointers: an object that the watch has replaced meanwhile is not ours to take back.
func (v *Volumes) Release(choice *Choice) {
	if choice.Empty() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, b := range choice.Static {
		if h := v.volumes[b.Volume.Name]; h.ahead && h.assumed == b.Volume {
			v.volumes[b.Volume.Name] = held[*corev1.PersistentVolume]{seen: h.seen}
			v.indexLocked(b.Volume, h.seen)
		}
	}
	for _, c := range choice.Provision {
		key := claimKey(c.Namespace, c.Name)
		if h := v.claims[key]; h.ahead && h.assumed == c {
			v.claims[key] = held[*corev1.PersistentVolumeClaim]{seen: h.seen}
		}
	}
}

// Bind writes a choice and waits until its claims are bound, for patience at most. The goroutine of the pod's binding
// calls it, without a lock. With patience 0 the choice is written all the same: the next try may find it bound.
func (v *Volumes) Bind(ctx context.Context, choice *Choice, node *corev1.Node, patience time.Duration) error {
	if err := v.write(ctx, choice, node.Name); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, b := range choice.Static {
		if err := v.await(ctx, b.Claim, func() (bool, error) { return v.staticLocked(b) }); err != nil {
			return err
		}
	}
	for _, c := range choice.Provision {
		if err := v.await(ctx, c, func() (bool, error) { return v.provisionedLocked(c, node) }); err != nil {
			return err
		}
	}
	return nil
}

// writeTimeout bounds the writes of one choice: others wait for their turn.
const writeTimeout = time.Minute

// write sends what Reserve assumed: volumes with their claim first, then the nodes for provisioning. At most writers of
// them run at once, so that many pods with volumes do not crowd out other requests. What the server answers is taken in
// at once (see…Locked), without waiting for the watch.
func (v *Volumes) write(ctx context.Context, choice *Choice, node string) error {
	select {
	case v.writes <- struct{}{}:
		defer func() { <-v.writes }()
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for _, b := range choice.Static {
		pv, err := v.api.BindVolume(ctx, b.Volume)
		if err != nil {
			return fmt.Errorf("binding volume %s to claim %s/%s: %w", b.Volume.Name, b.Claim.Namespace, b.Claim.Name,
				err)
		}
		v.mu.Lock()
		v.seeVolumeLocked(pv)
		v.mu.Unlock()
	}
	for _, c := range choice.Provision {
		v.mu.Lock()
		seen := v.claims[claimKey(c.Namespace, c.Name)].seen
		v.mu.Unlock()
		// by another pod of this claim, or before this scheduler began
		if seen != nil && seen.Annotations[volumebinding.SelectedNode] == node {
			continue
		}
		got, err := v.api.SelectNode(ctx, c, node)
		if err != nil {
			return fmt.Errorf("selecting node %s for claim %s/%s: %w", node, c.Namespace, c.Name, err)
		}
		v.mu.Lock()
		v.seeClaimLocked(got)
		v.mu.Unlock()
	}
	return nil
}

// await waits until done reports true or an error. It asks at the beginning and after each change of the claim or of a
// volume that names it. All who wait for one claim share a channel, which the change closes.
func (v *Volumes) await(ctx context.Context, c *corev1.PersistentVolumeClaim, done func() (bool, error)) error {
	key := claimKey(c.Namespace, c.Name)
	for {
		v.mu.Lock()
		ok, err := done()
		ch := v.waiting[key]
		if ch == nil && !ok && err == nil {
			ch = make(chan struct{})
			v.waiting[key] = ch
		}
		v.mu.Unlock()
		if ok || err != nil {
			return err
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errDeleted: there is no such claim any more.
func errDeleted(c *corev1.PersistentVolumeClaim) error {
	return fmt.Errorf("persistentvolumeclaim %q is gone", c.Namespace+"/"+c.Name)
}

// staticLocked reports whether a claim has the volume that was chosen for it.
//
// It returns an error as soon as waiting cannot help any more: the claim or the volume went to somebody else.
func (v *Volumes) staticLocked(b Binding) (bool, error) {
	c := v.claims[claimKey(b.Claim.Namespace, b.Claim.Name)].now()
	if c == nil || c.UID != b.Claim.UID {
		return false, errDeleted(b.Claim)
	}
	pv := v.volumes[b.Volume.Name].now()
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != c.UID {
		return false, errors.New("the volume that was chosen is no longer the claim's")
	}
	got, done := v.boundLocked(c)
	if done && got != nil && got.Name != pv.Name {
		return false, fmt.Errorf("claim %s/%s was bound to another volume", c.Namespace, c.Name)
	}
	return done && got != nil, nil
}

// provisionedLocked reports whether a claim has a volume that the node can use.
//
// A provisioner that gives up removes the annotation of the node: the pod must be scheduled again, perhaps elsewhere.
func (v *Volumes) provisionedLocked(was *corev1.PersistentVolumeClaim, node *corev1.Node) (bool, error) {
	c := v.claims[claimKey(was.Namespace, was.Name)].now()
	if c == nil || c.UID != was.UID {
		return false, errDeleted(was)
	}
	pv, done := v.boundLocked(c)
	switch {
	case done && pv != nil && !usableOn(pv, node):
		return false, fmt.Errorf("pv %q node affinity doesn't match node %q: no matching NodeSelectorTerms", pv.Name,
			node.Name)
	case done:
		return pv != nil, nil
	case c.Annotations[volumebinding.SelectedNode] != node.Name: // whoever provisions wants another node
		return false, fmt.Errorf("provisioning failed for PVC %q", c.Name)
	}
	return false, nil
}
