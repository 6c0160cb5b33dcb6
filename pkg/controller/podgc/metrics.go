package podgc

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/controller"
)

// Why a pod is deleted, in upstream's words.
const (
	terminated       = "terminated"
	orphaned         = "orphaned"
	leftOutOfService = "out-of-service"
	unscheduled      = "unscheduled"
)

// metrics are upstream's, by its names: the pods that were deleted, and those that were to be and could not, by
// namespace and reason.
type metrics struct{ deleted, failed *prometheus.CounterVec }

func newMetrics(m *controller.Metrics) *metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: "pod_gc_collector", Name: name, Help: help},
			[]string{"namespace", "reason"})
	}
	out := &metrics{
		deleted: counter("force_delete_pods_total", "Pods that were deleted at once."),
		failed:  counter("force_delete_pod_errors_total", "Times that a pod could not be deleted at once."),
	}
	m.Register(out.deleted)
	m.Register(out.failed)
	return out
}

func (m *metrics) removed(namespace, why string, err error) {
	m.deleted.WithLabelValues(namespace, why).Inc()
	if err != nil {
		m.failed.WithLabelValues(namespace, why).Inc()
	}
}
