// Package claims finds the PersistentVolumes that pods' claims are bound to, and refuses those that the pod, or this
// node, must not use.
package claims

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/storage/ephemeral"

	"bonsai/pkg/kubelet/volume"
)

// Client reads claims and volumes. A node may read those of its own pods, one by one.
type Client interface {
	PersistentVolumeClaim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
}

// Resolver implements volume.Claims. Node is the node's own object, nil before it is known.
type Resolver struct {
	Client Client
	Node   func() *corev1.Node
}

var _ volume.Claims = (*Resolver)(nil)

// Resolve implements volume.Claims.
func (r *Resolver) Resolve(ctx context.Context, pod *corev1.Pod, v *corev1.Volume) (volume.Spec, error) {
	name := ephemeral.VolumeClaimName(pod, v)
	spec := volume.Spec{Volume: v}
	if c := v.PersistentVolumeClaim; c != nil {
		name, spec.ReadOnly = c.ClaimName, c.ReadOnly
	}
	err := r.bound(ctx, pod, name, &spec)
	if err == nil {
		err = mode(pod, &spec)
	}
	if err != nil {
		return spec, volume.Unprocessed(v.Name, err)
	}
	return spec, r.reachable(&spec)
}

// bound finds the volume that the claim called name is bound to.
func (r *Resolver) bound(ctx context.Context, pod *corev1.Pod, name string, spec *volume.Spec) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("error processing PVC %s/%s: "+format, append([]any{pod.Namespace, name}, args...)...)
	}
	claim, err := r.Client.PersistentVolumeClaim(ctx, pod.Namespace, name)
	if err != nil {
		return fail("failed to fetch PVC from API server: %w", err)
	}
	if spec.Volume.Ephemeral != nil {
		if err := ephemeral.VolumeIsForPod(pod, claim); err != nil {
			return err
		}
	}
	// A claim that is being deleted stays until its last pod ends. It starts no further ones.
	if claim.DeletionTimestamp != nil && (pod.Status.Phase == "" || pod.Status.Phase == corev1.PodPending) {
		return fail("PVC is being deleted")
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" {
		return fail("PVC is not bound")
	}
	pv, err := r.Client.PersistentVolume(ctx, claim.Spec.VolumeName)
	if err != nil {
		return fail("failed to fetch PV %s from API server: %w", claim.Spec.VolumeName, err)
	}
	switch ref := pv.Spec.ClaimRef; {
	case ref == nil:
		return fail("found PV object %s with nil pv.Spec.ClaimRef indicating it is not yet bound to the claim", pv.Name)
	case ref.UID != claim.UID:
		return fail("found PV object %s with unexpected pvc UID %q, expected %q", pv.Name, ref.UID, claim.UID)
	}
	spec.PV, spec.Claim = pv, claim
	return nil
}

// mode checks that containers ask for a device where the volume is one, and for files where it has them.
func mode(pod *corev1.Pod, spec *volume.Spec) error {
	name := spec.Volume.Name
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			for _, d := range list[i].VolumeDevices {
				if d.Name == name && !spec.Block() {
					return fmt.Errorf("volume %s has volumeMode Filesystem, but is specified in volumeDevices", name)
				}
			}
			for _, m := range list[i].VolumeMounts {
				if m.Name == name && spec.Block() {
					return fmt.Errorf("volume %s has volumeMode Block, but is specified in volumeMounts", name)
				}
			}
		}
	}
	return nil
}

// reachable checks that the volume may be used on this node.
func (r *Resolver) reachable(spec *volume.Spec) error {
	pv := spec.PV
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return nil
	}
	node := r.Node()
	if node == nil {
		return errors.New("the node is not registered yet")
	}
	ok, err := corev1helpers.MatchNodeSelectorTerms(node, pv.Spec.NodeAffinity.Required)
	if err == nil && !ok {
		err = errors.New("no matching NodeSelectorTerms")
	}
	switch {
	case err == nil:
		return nil
	case spec.Block():
		return &volume.MapError{Err: fmt.Errorf("MapVolume.NodeAffinity check failed for volume %q : %w", pv.Name, err)}
	}
	return fmt.Errorf("MountVolume.NodeAffinity check failed for volume %q : %w", pv.Name, err)
}
