package metrics

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestConfigMode: the words are those that a kubelet 1.37.2 counts such pods with.
func TestConfigMode(t *testing.T) {
	t.Parallel()
	needs := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}
	for want, pod := range map[string]corev1.PodSpec{
		"": {Containers: []corev1.Container{{}}, Resources: &corev1.ResourceRequirements{}},
		"container_level": {Containers: []corev1.Container{{}},
			InitContainers: []corev1.Container{{Resources: needs}}},
		"pod_level":               {Containers: []corev1.Container{{}}, Resources: &needs},
		"pod_and_container_level": {Containers: []corev1.Container{{Resources: needs}}, Resources: &needs},
	} {
		if got := configMode(&corev1.Pod{Spec: pod}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
