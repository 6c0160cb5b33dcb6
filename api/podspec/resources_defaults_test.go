package podspec

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestDefaultPodResources: the defaults are those of a kube-apiserver v1.37.2.
func TestDefaultPodResources(t *testing.T) {
	t.Parallel()
	type list = map[corev1.ResourceName]string
	of := func(l list) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, text := range l {
			out[name] = resource.MustParse(text)
		}
		return out
	}
	containers := func(limits ...list) []corev1.Container {
		var out []corev1.Container
		for _, l := range limits {
			c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: of(l)}}
			defaultRequests(&c.Resources)
			out = append(out, c)
		}
		return out
	}
	both, cpu := list{"cpu": "1", "memory": "1Gi"}, list{"cpu": "1"}
	for name, c := range map[string]struct {
		containers, init []corev1.Container
		limits, requests list
		wantL, wantR     list
	}{
		"nothing": {containers: containers(both)},
		"every limit": {containers: containers(both, both), requests: list{"cpu": "2"},
			wantL: list{"cpu": "2", "memory": "2Gi"},
			wantR: list{"cpu": "2", "memory": "2Gi"}},
		"one without": {containers: containers(both, cpu), requests: list{"cpu": "2"}, wantL: list{"cpu": "2"},
			wantR: list{"cpu": "2", "memory": "1Gi"}},
		"init without": {containers: containers(both), init: containers(nil), requests: both, wantR: both},
		"init is more": {containers: containers(both), init: containers(list{"cpu": "3", "memory": "2Gi"}),
			requests: list{"cpu": "3", "memory": "2Gi"}, wantL: list{"cpu": "3", "memory": "2Gi"},
			wantR: list{"cpu": "3", "memory": "2Gi"}},
		"requests are more": {containers: containers(both), requests: list{"cpu": "5"},
			wantL: list{"cpu": "5", "memory": "1Gi"},
			wantR: list{"cpu": "5", "memory": "1Gi"}},
		"a limit": {containers: containers(both), limits: list{"cpu": "2"}, wantL: list{"cpu": "2", "memory": "1Gi"},
			wantR: list{"cpu": "1", "memory": "1Gi"}},
		"huge pages of one": {containers: containers(list{"cpu": "1", "hugepages-2Mi": "2Mi"}, cpu),
			requests: list{"cpu": "3"},
			wantL:    list{"cpu": "3", "hugepages-2Mi": "2Mi"}, wantR: list{"cpu": "3", "hugepages-2Mi": "2Mi"}},
		"huge pages of the pod": {containers: containers(list{"cpu": "1", "hugepages-2Mi": "2Mi"}, cpu),
			limits: list{"cpu": "3", "hugepages-2Mi": "4Mi"}, wantL: list{"cpu": "3", "hugepages-2Mi": "4Mi"},
			wantR: list{"cpu": "2", "hugepages-2Mi": "4Mi"}},
	} {
		s := &corev1.PodSpec{Containers: c.containers, InitContainers: c.init,
			Resources: &corev1.ResourceRequirements{Limits: of(c.limits), Requests: of(c.requests)}}
		for range 2 { // the second time changes nothing
			DefaultPodResources(s)
			if !apiequality.Semantic.DeepEqual(s.Resources.Limits, of(c.wantL)) ||
				!apiequality.Semantic.DeepEqual(s.Resources.Requests, of(c.wantR)) {
				t.Errorf("%s: limits %v, requests %v", name, s.Resources.Limits, s.Resources.Requests)
			}
		}
	}
}
