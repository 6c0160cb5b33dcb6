// Package claimresize is the admission plug-in PersistentVolumeClaimResize. The server has no storage classes (storage.k8s.io),
// so that a claim which is to grow is refused, as Kubernetes refuses one whose class does not let claims grow.
package claimresize

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "PersistentVolumeClaimResize", Validator: plugin{}}
}

// Validate implements admission.Validator.
func (plugin) Validate(_ context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	old, was := a.OldObject.(*corev1.PersistentVolumeClaim)
	if !ok || !was || a.Operation != admission.Update || !a.Is(corev1.Resource("persistentvolumeclaims")) {
		return nil
	}
	asks, asked := claim.Spec.Resources.Requests[corev1.ResourceStorage], old.Spec.Resources.Requests[corev1.ResourceStorage]
	if old.Status.Phase != corev1.ClaimBound || asks.Cmp(asked) <= 0 {
		return nil
	}
	return admission.Forbid(a, "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
}
