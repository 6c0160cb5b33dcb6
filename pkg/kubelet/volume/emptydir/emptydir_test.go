package emptydir

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestMemorySize(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		volume, container string
		want              int64
	}{{"", "", 0}, {"1Mi", "", 1 << 20}, {"", "2Mi", 2 << 20}, {"1Mi", "2Mi", 1 << 20}, {"4Mi", "2Mi", 2 << 20}} {
		pod, v := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}, &corev1.EmptyDirVolumeSource{}
		if tc.volume != "" {
			v.SizeLimit = new(resource.MustParse(tc.volume))
		}
		if tc.container != "" {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse(tc.container)}
		}
		if got := memorySize(pod, v); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}
