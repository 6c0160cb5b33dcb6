package taintnodesbycondition_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/admission/taintnodesbycondition"
)

func TestAdmit(t *testing.T) {
	t.Parallel()
	notReady := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	for name, c := range map[string]struct {
		op          admission.Operation
		subresource string
		have        []corev1.Taint
		want        int
	}{
		"new": {admission.Create, "", nil, 1},
		"with another taint": {admission.Create, "", []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectNoSchedule}},
			2},
		"of another effect": {admission.Create, "",
			[]corev1.Taint{{Key: notReady.Key, Effect: corev1.TaintEffectNoExecute}}, 2},
		"tainted already":      {admission.Create, "", []corev1.Taint{notReady}, 1},
		"changed":              {admission.Update, "", nil, 0},
		"in another operation": {admission.Create, "proxy", nil, 0},
	} {
		n := &corev1.Node{Spec: corev1.NodeSpec{Taints: c.have}}
		a := &admission.Attributes{Operation: c.op, Resource: corev1.SchemeGroupVersion.WithResource("nodes"),
			Subresource: c.subresource, Object: n}
		if err := taintnodesbycondition.New().Mutator.Admit(t.Context(), a); err != nil ||
			len(n.Spec.Taints) != c.want {
			t.Errorf("%s: %v, %+v", name, err, n.Spec.Taints)
		}
	}
}
