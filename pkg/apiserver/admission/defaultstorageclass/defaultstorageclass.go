// Package defaultstorageclass is the admission plug-in DefaultStorageClass: a new claim that says nothing of its class
// gets the one that is marked as the default. A claim of the class "" wants a volume without a class.
package defaultstorageclass

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/storage"
	"bonsai/pkg/apiserver/admission"
)

type plugin struct{ classes admission.Classes }

// New returns the plug-in for the StorageClasses that classes lists.
func New(classes admission.Classes) admission.Plugin {
	return admission.Plugin{Name: "DefaultStorageClass", Mutator: plugin{classes}}
}

// Admit implements admission.Mutator.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	claim, ok := a.Object.(*corev1.PersistentVolumeClaim)
	if !ok || a.Operation != admission.Create || !a.Is(corev1.Resource("persistentvolumeclaims")) ||
		claim.Spec.StorageClassName != nil {
		return nil
	}
	if _, annotated := claim.Annotations[corev1.BetaStorageClassAnnotation]; annotated {
		return nil
	}
	class, err := admission.DefaultClass(ctx, p.classes, storage.DefaultAnnotation, storage.BetaDefaultAnnotation)
	if err != nil {
		return fmt.Errorf("listing storage classes: %w", err)
	}
	claim.Spec.StorageClassName = class
	return nil
}
