package podautoscaler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/controller"
)

// metrics are upstream's, by its names.
type metrics struct {
	reconciliations, computations *prometheus.CounterVec
	reconciling, computing        *prometheus.HistogramVec
	desired                       *prometheus.GaugeVec
}

// newMetrics registers the figures; count returns the number of autoscalers.
//
// desired keeps a series for each autoscaler, until gone drops it.
func newMetrics(m *controller.Metrics, count func() float64) *metrics {
	const subsystem = "horizontal_pod_autoscaler_controller"
	labels, buckets := []string{"action", "error"}, prometheus.ExponentialBuckets(0.001, 2, 15)
	about := " The label 'action' is 'scale_down', 'scale_up' or 'none'; the label 'error' is 'spec', 'internal' or 'none'."
	out := &metrics{
		reconciliations: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "reconciliations_total",
				Help: "Number of reconciliations of HPA controller." + about}, labels),
		reconciling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "reconciliation_duration_seconds",
			Help: "The time(seconds) that the HPA controller takes to reconcile once." + about, Buckets: buckets,
		}, labels),
		computations: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "metric_computation_total",
				Help: "Number of metric computations." + about}, append(labels, "metric_type")),
		computing: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: subsystem, Name: "metric_computation_duration_seconds",
			Help: "The time(seconds) that the HPA controller takes to calculate one metric." + about, Buckets: buckets,
		}, append(labels, "metric_type")),
		desired: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Subsystem: subsystem, Name: "desired_replicas",
				Help: "Current desired replica count for HPA objects."}, []string{"namespace", "hpa_name"}),
	}
	for _, c := range []prometheus.Collector{
		out.reconciliations, out.reconciling, out.computations, out.computing, out.desired,
		prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Subsystem: subsystem, Name: "num_horizontal_pod_autoscalers",
				Help: "Current number of controlled HPA objects."}, count),
	} {
		m.Register(c)
	}
	return out
}

// reconciled counts a look at an autoscaler and what came of its metrics.
func (m *metrics) reconciled(p *plan, took time.Duration) {
	labels := []string{"none", failureKind(p.failed != nil, p.spec)}
	if p.scale {
		labels[0] = action(p.replicas - p.status.CurrentReplicas)
	}
	m.reconciliations.WithLabelValues(labels...).Inc()
	m.reconciling.WithLabelValues(labels...).Observe(took.Seconds())
	for _, j := range p.proposals {
		labels := []string{"none", failureKind(j.failed != nil, j.failed != nil && j.failed.spec), string(j.metric)}
		if j.failed == nil {
			labels[0] = action(j.change)
		}
		m.computations.WithLabelValues(labels...).Inc()
		m.computing.WithLabelValues(labels...).Observe(j.took.Seconds())
	}
}

func (m *metrics) wants(key controller.Key, replicas int32) {
	m.desired.WithLabelValues(key.Namespace, key.Name).Set(float64(replicas))
}

func (m *metrics) gone(key controller.Key) { m.desired.DeleteLabelValues(key.Namespace, key.Name) }

func action(change int32) string {
	switch {
	case change > 0:
		return "scale_up"
	case change < 0:
		return "scale_down"
	}
	return "none"
}

func failureKind(failed, spec bool) string {
	switch {
	case !failed:
		return "none"
	case spec:
		return "spec"
	}
	return "internal"
}
