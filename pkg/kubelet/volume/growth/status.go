package growth

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"bonsai/pkg/kubelet/volume"
)

const storage = corev1.ResourceStorage

// isDue reports whether a volume that is so large on this node is to grow, and to what size. What the driver can never
// do is left alone until the claim asks for something else, whereupon the resizer sets its status again.
func isDue(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume,
	has resource.Quantity) (to resource.Quantity, due bool) {
	to = pv.Spec.Capacity[storage]
	return to, to.Cmp(has) > 0 &&
		claim.Status.AllocatedResourceStatuses[storage] != corev1.PersistentVolumeClaimNodeResizeInfeasible
}

// grown reports whether a claim is as large already, by the doing of another node.
func grown(claim *corev1.PersistentVolumeClaim, to resource.Quantity) bool {
	return to.Cmp(claim.Status.Capacity[storage]) <= 0
}

// begun is the claim when the node begins.
func begun(claim *corev1.PersistentVolumeClaim, to resource.Quantity) *corev1.PersistentVolumeClaim {
	if grown(claim, to) {
		return claim
	}
	out := claim.DeepCopy()
	setStatus(out, corev1.PersistentVolumeClaimNodeResizeInProgress)
	return out
}

func setStatus(claim *corev1.PersistentVolumeClaim, s corev1.ClaimResourceStatus) {
	if claim.Status.AllocatedResourceStatuses == nil {
		claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{}
	}
	claim.Status.AllocatedResourceStatuses[storage] = s
}

// finished is the claim when the volume has got its new size.
func finished(claim *corev1.PersistentVolumeClaim, size resource.Quantity) *corev1.PersistentVolumeClaim {
	if grown(claim, size) {
		return claim
	}
	out := claim.DeepCopy()
	if out.Status.Capacity == nil {
		out.Status.Capacity = corev1.ResourceList{}
	}
	out.Status.Capacity[storage] = size
	delete(out.Status.AllocatedResourceStatuses, storage)
	out.Status.Conditions = slices.DeleteFunc(out.Status.Conditions, resizing)
	return out
}

// failed is the claim when the driver has refused.
func failed(claim *corev1.PersistentVolumeClaim, to resource.Quantity, why *volume.ExpandError,
	now metav1.Time) *corev1.PersistentVolumeClaim {
	if grown(claim, to) {
		return claim
	}
	out := claim.DeepCopy()
	if why.Infeasible {
		setStatus(out, corev1.PersistentVolumeClaimNodeResizeInfeasible)
	}
	c := corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimNodeResizeError,
		Status: corev1.ConditionTrue, LastTransitionTime: now,
		Message: fmt.Sprintf("failed to expand pvc with %v", why.Err)}
	if i := slices.IndexFunc(out.Status.Conditions, func(o corev1.PersistentVolumeClaimCondition) bool {
		return o.Type == c.Type
	}); i >= 0 {
		c.LastTransitionTime = out.Status.Conditions[i].LastTransitionTime
		out.Status.Conditions[i] = c
	} else {
		out.Status.Conditions = append(out.Status.Conditions, c)
	}
	return out
}

// patchOf is the strategic merge patch that makes one status of a claim of the other, nil if they are the same. It is
// for that claim only, whose name another one may have got.
func patchOf(was, is *corev1.PersistentVolumeClaim) ([]byte, error) {
	if equality.Semantic.DeepEqual(was.Status, is.Status) {
		return nil, nil
	}
	old, err := json.Marshal(&corev1.PersistentVolumeClaim{Status: was.Status})
	if err != nil {
		return nil, fmt.Errorf("encode the claim: %w", err)
	}
	next, err := json.Marshal(
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: was.UID}, Status: is.Status})
	if err != nil {
		return nil, fmt.Errorf("encode the claim: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(old, next, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return nil, fmt.Errorf("find what has changed of the claim: %w", err)
	}
	return patch, nil
}
