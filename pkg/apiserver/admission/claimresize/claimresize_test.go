package claimresize

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/apiserver/admission"
)

func claim(size string, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	c.Status.Phase = phase
	return c
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, new, sub string
		phase         corev1.PersistentVolumeClaimPhase
		refused       bool
	}{
		"grows":           {"1Gi", "2Gi", "", corev1.ClaimBound, true},
		"shrinks":         {"2Gi", "1Gi", "", corev1.ClaimBound, false},
		"same":            {"1Gi", "1024Mi", "", corev1.ClaimBound, false},
		"pending":         {"1Gi", "2Gi", "", corev1.ClaimPending, false},
		"its status only": {"1Gi", "2Gi", "status", corev1.ClaimBound, false},
	} {
		a := &admission.Attributes{Operation: admission.Update, Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"),
			Subresource: c.sub, Name: "c", Object: claim(c.new, c.phase), OldObject: claim(c.old, c.phase)}
		if err := New().Validator.Validate(t.Context(), a); apierrors.IsForbidden(err) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
