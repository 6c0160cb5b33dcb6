package controller

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// Metrics counts what the loops do. A nil *Metrics counts nothing.
type Metrics struct {
	total    *prometheus.CounterVec
	panics   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	queue    *queueMetrics
	registry prometheus.Registerer
	ticks    *ticks // when the queues look at their work
}

// NewMetrics registers the engine's metrics, and upstream's workqueue_* ones, at r.
func NewMetrics(r prometheus.Registerer) *Metrics {
	label := []string{"controller"}
	m := &Metrics{
		total: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "controller_reconcile_total", Help: "Reconciled keys by result."},
			[]string{"controller", "result"}),
		panics: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "controller_reconcile_panics_total",
				Help: "Panics recovered while reconciling."}, label),
		duration: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "controller_reconcile_duration_seconds", Help: "Time to reconcile one key.",
				Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9)}, label),
		queue:    newQueueMetrics(),
		registry: r,
		ticks:    newTicks(),
	}
	r.MustRegister(m.total, m.panics, m.duration)
	m.queue.register(r)
	return m
}

// Register shows a controller's own metrics.
func (m *Metrics) Register(c prometheus.Collector) {
	if m != nil {
		m.registry.MustRegister(c)
	}
}

func (m *Metrics) reconciled(name, result string, d time.Duration) {
	if m == nil {
		return
	}
	m.total.WithLabelValues(name, result).Inc()
	m.duration.WithLabelValues(name).Observe(d.Seconds())
}

func (m *Metrics) panicked(name string) {
	if m != nil {
		m.panics.WithLabelValues(name).Inc()
	}
}

// queueMetrics is a workqueue.MetricsProvider with upstream's names.
type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

var _ workqueue.MetricsProvider = (*queueMetrics)(nil)

func newQueueMetrics() *queueMetrics {
	label := []string{"name"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "workqueue_" + name, Help: help}, label)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "workqueue_" + name, Help: help,
				Buckets: prometheus.ExponentialBuckets(1e-8, 10, 10)}, label)
	}
	return &queueMetrics{
		depth:      gauge("depth", "Keys waiting in the queue."),
		unfinished: gauge("unfinished_work_seconds", "Seconds of work in progress that is not yet in work_duration."),
		longest: gauge("longest_running_processor_seconds",
			"Seconds the longest running worker has been at its key."),
		adds:    counter("adds_total", "Keys added to the queue."),
		retries: counter("retries_total", "Keys added again after a failure."),
		latency: histogram("queue_duration_seconds", "Seconds a key waits in the queue."),
		work:    histogram("work_duration_seconds", "Seconds of work on a key."),
	}
}

func (q *queueMetrics) register(r prometheus.Registerer) {
	r.MustRegister(q.depth, q.unfinished, q.longest, q.adds, q.retries, q.latency, q.work)
}

func (q *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name)
}

func (q *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name)
}

func (q *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.latency.WithLabelValues(name)
}

func (q *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.work.WithLabelValues(name)
}

func (q *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name)
}

func (q *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name)
}

func (q *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name)
}
