package metrics

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	pod := func(uid types.UID, priority int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{Priority: &priority}}
	}
	m.States(pod("a", 7), corev1.PodReasonDeferred, false)
	m.States(pod("b", -1000), corev1.PodReasonInfeasible, true)
	m.States(pod("c", 0), "", true)
	m.States(pod("b", -1000), "", false)
	m.States(pod("d", 2_000_001_000), corev1.PodReasonInfeasible, false)
	m.States(pod("e", 100_000), corev1.PodReasonDeferred, false)
	m.States(pod("f", -999), corev1.PodReasonDeferred, false)
	m.Resolved(&corev1.Pod{}, "accepted", time.Second)
	m.Done(time.Millisecond, nil)
	m.Done(time.Second, nil)
	m.Done(time.Second, errors.New("in use"))
}
