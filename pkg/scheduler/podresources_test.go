package scheduler_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler"
)

// TestPodResources: a pod's containers together, with the resources' units; what nothing is asked of has no series.
func TestPodResources(t *testing.T) {
	t.Parallel()
	container := func(requests, limits corev1.ResourceList) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"},
		Spec: corev1.PodSpec{NodeName: "n", SchedulerName: "s", Priority: new(int32(7)), Containers: []corev1.Container{
			container(corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi"),
				"example.com/card": resource.MustParse("2")}, corev1.ResourceList{"cpu": resource.MustParse("1")}),
			container(corev1.ResourceList{"cpu": resource.MustParse("250m"),
				"hugepages-2Mi": resource.MustParse("4Mi")},
				nil),
		}}}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(&scheduler.PodResources{Each: func(yield func(*corev1.Pod) bool) { yield(p) }})
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			got[f.GetName()+" "+strings.Join(labels, " ")] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{}
	for resource, v := range map[string]float64{"resource=cpu scheduler=s unit=cores": 0.5,
		"resource=memory scheduler=s unit=bytes":             64 << 20,
		"resource=example.com/card scheduler=s unit=integer": 2,
		"resource=hugepages-2Mi scheduler=s unit=bytes":      4 << 20} {
		want["kube_pod_resource_request namespace=ns node=n pod=p priority=7 "+resource] = v
	}
	want["kube_pod_resource_limit namespace=ns node=n pod=p priority=7 resource=cpu scheduler=s unit=cores"] = 1
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %v, want %v", name, got[name], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v, want %v", got, want)
	}
}
