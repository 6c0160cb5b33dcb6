package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodSpecChanged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"nothing": {func(*corev1.Pod) {}, false},
		"metadata and status": {func(p *corev1.Pod) {
			p.Labels, p.Status.Phase = map[string]string{"a": "b"}, corev1.PodRunning
		}, false},
		"binding": {func(p *corev1.Pod) { p.Spec.NodeName = "n1" }, false},
		"image":   {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "other" }, true},
		"ephemeral container": {func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = make([]corev1.EphemeralContainer, 1)
		}, true},
	} {
		old := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: "one"}}}}
		obj := old.DeepCopy()
		c.change(obj)
		if got := podSpecChanged(obj, old); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
