package runtimeclass

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/apiserver/admission"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		op   admission.Operation
		want string
	}{
		"no class":       {corev1.PodSpec{}, admission.Create, ""},
		"a class":        {corev1.PodSpec{RuntimeClassName: new("fast")}, admission.Create, `pod rejected: RuntimeClass "fast" not found`},
		"no valid class": {corev1.PodSpec{RuntimeClassName: new("A b")}, admission.Create, `pod rejected: RuntimeClass "A b" not found`},
		"overhead":       {corev1.PodSpec{Overhead: corev1.ResourceList{"cpu": resource.MustParse("1")}}, admission.Create, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
		"an update":      {corev1.PodSpec{RuntimeClassName: new("fast")}, admission.Update, ""},
	} {
		a := &admission.Attributes{Operation: c.op, Resource: corev1.SchemeGroupVersion.WithResource("pods"), Name: "p", Object: &corev1.Pod{Spec: c.spec}}
		err := New().Mutator.Admit(t.Context(), a)
		if c.want == "" && err != nil || c.want != "" && (!apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
