package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestQOSClass(t *testing.T) {
	t.Parallel()
	both := corev1.ResourceRequirements{Limits: list("cpu", "1", "memory", "1Gi"),
		Requests: list("cpu", "1", "memory", "1Gi")}
	for name, c := range map[string]struct {
		containers, init []corev1.ResourceRequirements
		pod              *corev1.ResourceRequirements
		want             corev1.PodQOSClass
	}{
		"nothing asked":         {containers: []corev1.ResourceRequirements{{}}, want: corev1.PodQOSBestEffort},
		"all limits":            {containers: []corev1.ResourceRequirements{both}, want: corev1.PodQOSGuaranteed},
		"one container without": {containers: []corev1.ResourceRequirements{both, {}}, want: corev1.PodQOSBurstable},
		"init container without": {containers: []corev1.ResourceRequirements{both},
			init: []corev1.ResourceRequirements{{}}, want: corev1.PodQOSBurstable},
		"cpu only": {
			containers: []corev1.ResourceRequirements{{Limits: list("cpu", "1"), Requests: list("cpu", "1")}},
			want:       corev1.PodQOSBurstable},
		"requests below limits": {
			containers: []corev1.ResourceRequirements{
				{Limits: both.Limits, Requests: list("cpu", "1", "memory", "1Mi")}}, want: corev1.PodQOSBurstable},
		"other resources": {containers: []corev1.ResourceRequirements{{Limits: list("example.com/gpu", "1")}},
			want: corev1.PodQOSBestEffort},
		"zeros": {containers: []corev1.ResourceRequirements{{Requests: list("cpu", "0")}},
			want: corev1.PodQOSBestEffort},
		"the pod speaks for all": {containers: []corev1.ResourceRequirements{{}}, pod: &both,
			want: corev1.PodQOSGuaranteed},
		"limits without requests": {containers: []corev1.ResourceRequirements{{Limits: both.Limits}},
			want: corev1.PodQOSBurstable},
		"the pod names nothing": {containers: []corev1.ResourceRequirements{both},
			pod: &corev1.ResourceRequirements{}, want: corev1.PodQOSGuaranteed},
		"the pod asks for nothing": {containers: []corev1.ResourceRequirements{{}}, pod: &corev1.ResourceRequirements{},
			want: corev1.PodQOSBestEffort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{Spec: corev1.PodSpec{Resources: c.pod}}
			for _, r := range c.containers {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Resources: r})
			}
			for _, r := range c.init {
				p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Resources: r})
			}
			if got := QOSClass(p); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}
