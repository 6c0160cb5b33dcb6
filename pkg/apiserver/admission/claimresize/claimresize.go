// Package claimresize is the admission plug-in PersistentVolumeClaimResize: a bound claim may grow only if its class
// says that its volumes can.
package claimresize

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"bonsai/api/core"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct{ classes registry.Getter }

// New returns the plug-in; classes are the StorageClasses.
func New(classes registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "PersistentVolumeClaimResize", Validator: plugin{classes}}
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	old, was := a.OldObject.(*corev1.PersistentVolumeClaim)
	if !ok || !was || a.Operation != admission.Update || !a.Is(corev1.Resource("persistentvolumeclaims")) {
		return nil
	}
	asks, asked := claim.Spec.Resources.Requests[corev1.ResourceStorage],
		old.Spec.Resources.Requests[corev1.ResourceStorage]
	if old.Status.Phase != corev1.ClaimBound || asks.Cmp(asked) <= 0 {
		return nil
	}
	grows, err := p.grows(ctx, core.ClaimClass(claim))
	if err != nil || grows {
		return err
	}
	return admission.Forbid(a,
		"only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
}

// grows reports whether volumes of a class can grow; those of no class, or of one that is gone, cannot.
func (p plugin) grows(ctx context.Context, class string) (bool, error) {
	if class == "" {
		return false, nil
	}
	c, err := registry.Find[*storagev1.StorageClass](ctx, p.classes, "", class)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading storage class %s: %w", class, err)
	}
	return ptr.Deref(c.AllowVolumeExpansion, false), nil
}
