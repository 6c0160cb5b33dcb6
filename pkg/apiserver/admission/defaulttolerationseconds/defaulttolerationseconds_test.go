package defaulttolerationseconds

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		have []corev1.Toleration
		want int
	}{
		"none": {nil, 2},
		"one of them": {
			[]corev1.Toleration{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute}}, 2},
		"everything": {[]corev1.Toleration{{Operator: corev1.TolerationOpExists}}, 1},
		"of another effect": {
			[]corev1.Toleration{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, 3},
		"of every effect":     {[]corev1.Toleration{{Key: corev1.TaintNodeUnreachable}}, 2},
		"of something of its": {[]corev1.Toleration{{Key: "x", Effect: corev1.TaintEffectNoExecute}}, 3},
	} {
		p := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: c.have}}
		a := &admission.Attributes{Operation: admission.Create,
			Resource: corev1.SchemeGroupVersion.WithResource("pods"), Object: p}
		for range 2 {
			if err := New(Default, Default).Mutator.Admit(context.Background(), a); err != nil ||
				len(p.Spec.Tolerations) != c.want {
				t.Errorf("%s: got %v, %+v", name, err, p.Spec.Tolerations)
			}
		}
	}
}
