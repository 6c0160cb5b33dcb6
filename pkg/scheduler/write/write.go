// Package write is what the scheduler writes to the API server: bindings, the status of waiting pods, evictions and
// events.
package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/events"
	"bonsai/pkg/apiclient/resource"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/volumes"
)

// Writer is safe for concurrent use; make it with New.
type Writer struct {
	pods    *apiclient.Resource[*corev1.Pod]
	claims  *apiclient.Resource[*corev1.PersistentVolumeClaim]
	volumes *apiclient.Resource[*corev1.PersistentVolume]
	devices *apiclient.Resource[*resourcev1.ResourceClaim]
	events  *apiclient.Resource[*eventsv1.Event]
	// pause is how long the first wait for another try of a binding is; each is twice as long as the one before.
	pause time.Duration
}

// New returns a writer with the client's identity.
func New(c *apiclient.Client) *Writer {
	return &Writer{pods: core.Pods(c), claims: core.PersistentVolumeClaims(c), volumes: core.PersistentVolumes(c),
		devices: resource.ResourceClaims(c), events: events.Events(c), pause: 100 * time.Millisecond}
}

// CreateEvent writes an event.
func (w *Writer) CreateEvent(ctx context.Context, e *eventsv1.Event) error {
	return w.events.Send(ctx, e.Namespace, "", "", "Event", e)
}

// PatchEvent sets the series of an event.
func (w *Writer) PatchEvent(ctx context.Context, namespace, name string, series *eventsv1.EventSeries) error {
	patch, err := json.Marshal(map[string]any{"series": series})
	if err != nil {
		return fmt.Errorf("encoding a series: %w", err)
	}
	return w.events.SendPatch(ctx, namespace, name, types.MergePatchType, patch)
}

// PatchStatus sets a condition of the pod and, if nominated is not nil, status.nominatedNodeName.
func (w *Writer) PatchStatus(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition,
	nominated *string) error {
	status := map[string]any{}
	if condition != nil {
		status["conditions"] = []*corev1.PodCondition{condition}
	}
	if nominated != nil {
		status["nominatedNodeName"] = *nominated
		if *nominated == "" {
			status["nominatedNodeName"] = nil
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding a pod status: %w", err)
	}
	return w.pods.SendPatch(ctx, pod.Namespace, pod.Name, types.StrategicMergePatchType, patch, "status")
}

// Preempt marks pod as disrupted by the scheduler and deletes it, if it is still the same pod; nil if it is gone
// already.
func (w *Writer) Preempt(ctx context.Context, pod *corev1.Pod, condition *corev1.PodCondition) error {
	if err := w.PatchStatus(ctx, pod, condition, nil); err != nil {
		if gone(err) {
			return nil
		}
		return fmt.Errorf("marking pod %s/%s as preempted: %w", pod.Namespace, pod.Name, err)
	}
	if err := w.pods.Delete(ctx, pod.Namespace, pod.Name, pod.UID); err != nil && !gone(err) {
		return fmt.Errorf("deleting preempted pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// BindVolume writes the claim that a volume names, if the volume is still the one that was seen.
func (w *Writer) BindVolume(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	meta := map[string]any{"uid": pv.UID, "resourceVersion": pv.ResourceVersion}
	if by, ok := pv.Annotations[volumebinding.BoundByController]; ok {
		meta["annotations"] = map[string]string{volumebinding.BoundByController: by}
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta, "spec": map[string]any{"claimRef": pv.Spec.ClaimRef}})
	if err != nil {
		return nil, fmt.Errorf("encoding a volume's claim: %w", err)
	}
	got, err := w.volumes.Patch(ctx, "", pv.Name, types.MergePatchType, patch)
	if err != nil {
		return nil, err
	}
	volumes.SlimVolume(got)
	return got, nil
}

// SelectNode writes the node that a claim's volume is to be provisioned for, if the claim is still the one that was
// seen.
func (w *Writer) SelectNode(ctx context.Context, c *corev1.PersistentVolumeClaim,
	node string) (*corev1.PersistentVolumeClaim, error) {
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"uid": c.UID, "resourceVersion": c.ResourceVersion,
			"annotations": map[string]string{volumebinding.SelectedNode: node}}})
	if err != nil {
		return nil, fmt.Errorf("encoding a claim's node: %w", err)
	}
	got, err := w.claims.Patch(ctx, c.Namespace, c.Name, types.MergePatchType, patch)
	if err != nil {
		return nil, err
	}
	volumes.SlimClaim(got)
	return got, nil
}

// UpdateClaim writes what is not status of a ResourceClaim, if the claim is still the one that was seen.
func (w *Writer) UpdateClaim(ctx context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return slimClaim(w.devices.Update(ctx, c))
}

// UpdateClaimStatus writes the status of a ResourceClaim, if the claim is still the one that was seen.
func (w *Writer) UpdateClaimStatus(ctx context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim,
	error) {
	return slimClaim(w.devices.UpdateStatus(ctx, c))
}

// GetClaim reads the newest state of a ResourceClaim.
func (w *Writer) GetClaim(ctx context.Context, namespace, name string) (*resourcev1.ResourceClaim, error) {
	return slimClaim(w.devices.Get(ctx, namespace, name))
}

// CreateClaim makes a ResourceClaim.
func (w *Writer) CreateClaim(ctx context.Context, c *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	return slimClaim(w.devices.Create(ctx, c))
}

// DeleteClaim deletes this ResourceClaim, and no other of its name.
func (w *Writer) DeleteClaim(ctx context.Context, c *resourcev1.ResourceClaim) error {
	return w.devices.Delete(ctx, c.Namespace, c.Name, c.UID)
}

// TellExtendedClaim writes into a pod's status which claim was made for its extended resources.
func (w *Writer) TellExtendedClaim(ctx context.Context, pod *corev1.Pod,
	s *corev1.PodExtendedResourceClaimStatus) error {
	patch, err := json.Marshal(
		map[string]any{"metadata": map[string]any{"uid": pod.UID},
			"status": map[string]any{"extendedResourceClaimStatus": s}})
	if err != nil {
		return fmt.Errorf("encoding a pod's status: %w", err)
	}
	return w.pods.SendPatch(ctx, pod.Namespace, pod.Name, types.MergePatchType, patch, "status")
}

func slimClaim(c *resourcev1.ResourceClaim, err error) (*resourcev1.ResourceClaim, error) {
	if err != nil {
		return nil, err
	}
	devices.SlimClaim(c)
	return c, nil
}

// gone reports whether err says that the pod does not exist, or that another one has its name.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
