package prober

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Metrics counts probes under upstream's names (/metrics/probes). A nil *Metrics counts nothing.
type Metrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// NewMetrics registers at r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		total: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "prober_probe_total",
				Help: "Cumulative number of a liveness, readiness or startup probe for a container by result."},
			[]string{"probe_type", "result", "container", "pod", "namespace", "pod_uid"}),
		took: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "prober_probe_duration_seconds",
				Help: "Duration in seconds for a probe response."},
			[]string{"probe_type", "container", "pod", "namespace"}),
	}
	r.MustRegister(m.total, m.took)
	return m
}

// probed takes the outcome of one probe: successful, failed or unknown.
func (m *Metrics) probed(pod *corev1.Pod, container string, kind Kind, ok bool, err error, took time.Duration) {
	if m == nil {
		return
	}
	result := "failed"
	switch {
	case err != nil:
		result = "unknown"
	case ok:
		result = "successful"
	}
	m.total.WithLabelValues(kind.String(), result, container, pod.Name, pod.Namespace, string(pod.UID)).Inc()
	m.took.WithLabelValues(kind.String(), container, pod.Name, pod.Namespace).Observe(took.Seconds())
}

// forget drops what is counted of a pod that is gone; others of its name have other UIDs.
func (m *Metrics) forget(pod *corev1.Pod, uid types.UID) {
	if m == nil {
		return
	}
	m.total.DeletePartialMatch(prometheus.Labels{"pod_uid": string(uid)})
	m.took.DeletePartialMatch(prometheus.Labels{"pod": pod.Name, "namespace": pod.Namespace})
}
