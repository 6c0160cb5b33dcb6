package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/runtime"
)

// admissions count the pods that got a place, and those that got none.
type admissions struct{ all, rejected *prometheus.CounterVec }

func newAdmissions(r prometheus.Registerer) admissions {
	a := admissions{all: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubelet_pod_level_resources_admission_total",
		Help: "Pods that got a place, by who says what they need (pod_level, container_level, pod_and_container_level, or nobody) and by class."}, []string{"config_mode", "qos_class"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_admission_rejections_total",
			Help: "Pods that got no place, by the reason in their status."}, []string{"reason"})}
	r.MustRegister(a.all, a.rejected)
	return a
}

// PodAdmitted counts a pod.
func (a admissions) PodAdmitted(pod *corev1.Pod) {
	a.all.WithLabelValues(configMode(pod), strings.ToLower(string(runtime.QOSClass(pod)))).Inc()
}

// PodRejected counts a pod that got no place.
func (a admissions) PodRejected(reason string) { a.rejected.WithLabelValues(reason).Inc() }

// configMode is who says what a pod needs, "" for nobody.
func configMode(pod *corev1.Pod) string {
	whole, parts := resource.IsPodLevelResourcesSet(pod), false
	for c := range runtime.Containers(pod) {
		parts = parts || len(c.Resources.Requests) > 0 || len(c.Resources.Limits) > 0
	}
	switch {
	case whole && parts:
		return "pod_and_container_level"
	case whole:
		return "pod_level"
	case parts:
		return "container_level"
	}
	return ""
}
