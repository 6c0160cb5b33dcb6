// Package storageobjectinuseprotection is the admission plug-in StorageObjectInUseProtection: new claims, persistent
// volumes and volume attributes classes get a finalizer, so that they stay while they are used. A controller takes it
// off.
package storageobjectinuseprotection

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/core/volumebinding"
	"bonsai/pkg/apiserver/admission"
)

type plugin struct{}

// New returns the plug-in.
func New() admission.Plugin {
	return admission.Plugin{Name: "StorageObjectInUseProtection", Mutator: plugin{}}
}

// Admit implements admission.Mutator.
func (plugin) Admit(_ context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create || a.Subresource != "" {
		return nil
	}
	switch o := a.Object.(type) {
	case *corev1.PersistentVolumeClaim:
		protect(&o.ObjectMeta, volumebinding.ClaimProtection)
	case *corev1.PersistentVolume:
		protect(&o.ObjectMeta, volumebinding.VolumeProtection)
	case *storagev1.VolumeAttributesClass:
		protect(&o.ObjectMeta, volumebinding.AttributesProtection)
	}
	return nil
}

func protect(m *metav1.ObjectMeta, finalizer string) {
	if !slices.Contains(m.Finalizers, finalizer) {
		m.Finalizers = append(m.Finalizers, finalizer)
	}
}
