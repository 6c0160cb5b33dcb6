// Package defaultstorageclass is the admission plug-in DefaultStorageClass: a new claim that says nothing of its class
// gets the one that is marked as the default. A claim of the class "" wants a volume without a class.
package defaultstorageclass

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/storage"
	"bonsai/pkg/apiserver/admission"
)

// Classes lists the StorageClasses; the registry.Store of them is one.
type Classes interface {
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
}

type plugin struct{ classes Classes }

// New returns the plug-in.
func New(classes Classes) admission.Plugin {
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
	list, err := p.classes.List(ctx, "", "")
	if err != nil {
		return fmt.Errorf("listing storage classes: %w", err)
	}
	if class, ok := admission.NewestDefault(list, storage.DefaultAnnotation, storage.BetaDefaultAnnotation); ok {
		claim.Spec.StorageClassName = &class
	}
	return nil
}
