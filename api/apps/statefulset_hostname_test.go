package apps

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestHostNamesOfStatefulSets: the controller sets them for each pod, so those of the template may be anything, as in
// kube-apiserver 1.36.3.
func TestHostNamesOfStatefulSets(t *testing.T) {
	t.Parallel()
	spec := &appsv1.StatefulSetSpec{
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Hostname: "a.b", Subdomain: "A_"}}}
	if got := withClaims(spec); got.Spec.Hostname != "" || got.Spec.Subdomain != "" {
		t.Errorf("checked is %+v", got.Spec)
	}
	if spec.Template.Spec.Hostname != "a.b" {
		t.Error("the template has changed")
	}
}
