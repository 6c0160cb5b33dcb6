package defaultstorageclass

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/storage"
	"bonsai/pkg/apiserver/admission"
)

type classes []runtime.Object

func (c classes) List(context.Context, string, string) ([]runtime.Object, error) { return c, nil }

func class(name, annotation string, second int64) runtime.Object {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0)),
			Annotations: map[string]string{annotation: "true"}}}
}

// TestAdmit: the choices are those of a kube-apiserver v1.36.3.
func TestAdmit(t *testing.T) {
	t.Parallel()
	several := classes{class("s1", storage.DefaultAnnotation, 1), class("s3", storage.BetaDefaultAnnotation, 2),
		class("s2", storage.DefaultAnnotation, 2), class("other", "x", 3)}
	claim := func(class *string) corev1.PersistentVolumeClaim {
		return corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: class}}
	}
	annotated := claim(nil)
	annotated.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: ""}
	bound := claim(nil)
	bound.Spec.VolumeName = "v"
	for name, c := range map[string]struct {
		of      corev1.PersistentVolumeClaim
		classes classes
		op      admission.Operation
		want    string
	}{
		"no default":       {claim(nil), several[3:], admission.Create, "none"},
		"one default":      {claim(nil), several[:1], admission.Create, "s1"},
		"several defaults": {claim(nil), several, admission.Create, "s2"},
		"of no class":      {claim(new("")), several, admission.Create, ""},
		"named":            {claim(new("x")), several, admission.Create, "x"},
		"annotated":        {annotated, several, admission.Create, "none"},
		"pre-bound":        {bound, several, admission.Create, "s2"},
		"update":           {claim(nil), several, admission.Update, "none"},
	} {
		claim := c.of.DeepCopy()
		a := &admission.Attributes{Operation: c.op,
			Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Object: claim}
		if err := New(c.classes).Mutator.Admit(t.Context(), a); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := "none"
		if claim.Spec.StorageClassName != nil {
			got = *claim.Spec.StorageClassName
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
