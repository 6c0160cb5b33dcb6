package cri

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestSidecarScore: a sidecar's score is not above that of the regular containers (KEP-753, "OOM score adjustment").
func TestSidecarScore(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	c := func(name, memory string, policy *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{Name: name, RestartPolicy: policy, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c("a", "500", nil), c("b", "300", nil)},
		InitContainers: []corev1.Container{c("small", "10", &always), c("large", "400", &always), c("init", "10", nil)}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
	for i, want := range []int64{700, 600, 990} {
		if got := oomScore(pod, &pod.Spec.InitContainers[i], 1000); got != want {
			t.Errorf("%s: %d, want %d", pod.Spec.InitContainers[i].Name, got, want)
		}
	}
}
