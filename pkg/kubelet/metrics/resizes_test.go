package metrics

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/runtime"
)

// resize tells m of resizes of every kind.
func resize(m *Metrics) {
	list := func(name corev1.ResourceName, q string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(q)}
	}
	both := list("cpu", "2")
	both["memory"] = resource.MustParse("1Gi")
	m.Requested(runtime.Resources{
		Containers: map[string]corev1.ResourceRequirements{"a": {Requests: list("cpu", "1"), Limits: list("cpu", "1")},
			"b": {Requests: list("cpu", "1")}}},
		runtime.Resources{Containers: map[string]corev1.ResourceRequirements{
			"a": {Requests: list("cpu", "500m"), Limits: both}, "b": {}}})
	m.Infeasible(true)
	m.Infeasible(false)
	m.Infeasible(false)
	m.Accepted("pod_resized")
	m.States("a", corev1.PodReasonDeferred, false)
	m.States("b", corev1.PodReasonInfeasible, true)
	m.States("c", "", true)
	m.States("b", "", false)
	m.Done(time.Millisecond, nil)
	m.Done(time.Second, nil)
	m.Done(time.Second, errors.New("in use"))
}
