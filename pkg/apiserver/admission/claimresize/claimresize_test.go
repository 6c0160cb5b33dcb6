package claimresize

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry/registrytest"
)

func claim(size, class string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	c.Spec.StorageClassName = &class
	c.Status.Phase = phase
	return c
}

func TestValidate(t *testing.T) {
	t.Parallel()
	class := func(name string, grows *bool) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "x",
			AllowVolumeExpansion: grows}
	}
	classes := registrytest.Of(t, "storageclasses.storage.k8s.io", class("grows", new(true)),
		class("fixed", new(false)), class("silent", nil))
	for name, c := range map[string]struct {
		old, new, sub, class string
		phase                corev1.PersistentVolumeClaimPhase
		refused              bool
	}{
		"of a class that grows":        {"1Gi", "2Gi", "", "grows", corev1.ClaimBound, false},
		"of one that does not":         {"1Gi", "2Gi", "", "fixed", corev1.ClaimBound, true},
		"of one that does not say":     {"1Gi", "2Gi", "", "silent", corev1.ClaimBound, true},
		"of one that is gone":          {"1Gi", "2Gi", "", "gone", corev1.ClaimBound, true},
		"of none":                      {"1Gi", "2Gi", "", "", corev1.ClaimBound, true},
		"shrinks":                      {"2Gi", "1Gi", "", "", corev1.ClaimBound, false},
		"same":                         {"1Gi", "1024Mi", "", "", corev1.ClaimBound, false},
		"pending":                      {"1Gi", "2Gi", "", "", corev1.ClaimPending, false},
		"a write of its status, grows": {"1Gi", "2Gi", "status", "", corev1.ClaimBound, false},
	} {
		a := &admission.Attributes{Operation: admission.Update,
			Resource:    corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
			Subresource: c.sub, Name: "c", Object: claim(c.new, c.class, c.phase),
			OldObject: claim(c.old, c.class, c.phase)}
		if err := New(classes).Validator.Validate(t.Context(), a); apierrors.IsForbidden(err) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
