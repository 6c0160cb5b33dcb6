package storageobjectinuseprotection

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
)

// TestAdmit: the finalizers are those of a kube-apiserver v1.36.3.
func TestAdmit(t *testing.T) {
	t.Parallel()
	twice := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"kubernetes.io/pvc-protection"}}}
	for name, c := range map[string]struct {
		of        runtime.Object
		operation admission.Operation
		sub       string
		want      []string
	}{
		"claim": {&corev1.PersistentVolumeClaim{}, admission.Create, "",
			[]string{"kubernetes.io/pvc-protection"}},
		"claim that has it": {twice, admission.Create, "", []string{"kubernetes.io/pvc-protection"}},
		"volume": {&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a/b"}}},
			admission.Create, "", []string{"a/b", "kubernetes.io/pv-protection"}},
		"attributes class": {&storagev1.VolumeAttributesClass{}, admission.Create, "",
			[]string{"kubernetes.io/vac-protection"}},
		"storage class": {&storagev1.StorageClass{}, admission.Create, "", nil},
		"update":        {&corev1.PersistentVolumeClaim{}, admission.Update, "", nil},
		"subresource":   {&corev1.PersistentVolumeClaim{}, admission.Create, "status", nil},
	} {
		if err := New().Mutator.Admit(t.Context(),
			&admission.Attributes{Operation: c.operation, Subresource: c.sub, Object: c.of}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		m, err := meta.Accessor(c.of)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(m.GetFinalizers(), c.want) {
			t.Errorf("%s: %q, want %q", name, m.GetFinalizers(), c.want)
		}
	}
}
