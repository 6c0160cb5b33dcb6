package scheduler

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/scheduler/queue"
)

// Metrics are the scheduler's figures under upstream's names. A nil *Metrics counts nothing.
type Metrics struct {
	attempts *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// NewMetrics registers the figures; counts tells the queue's state when asked.
func NewMetrics(r prometheus.Registerer, counts func() queue.Counts) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_schedule_attempts_total",
			Help: "Number of attempts to schedule pods, by the result."}, []string{"result", "profile"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "scheduler_scheduling_attempt_duration_seconds",
			Help: "Scheduling attempt latency in seconds, binding included.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 18)}, []string{"result", "profile"}),
	}
	r.MustRegister(m.attempts, m.duration, &pending{counts: counts, desc: prometheus.NewDesc("scheduler_pending_pods",
		"Number of pending pods, by the queue they are in.", []string{"queue"}, nil)})
	return m
}

func (m *Metrics) attempt(result, profile string, took time.Duration) {
	if m == nil {
		return
	}
	m.attempts.WithLabelValues(result, profile).Inc()
	m.duration.WithLabelValues(result, profile).Observe(took.Seconds())
}

// pending reads the queue's counts when metrics are scraped.
type pending struct {
	counts func() queue.Counts
	desc   *prometheus.Desc
}

func (p *pending) Describe(ch chan<- *prometheus.Desc) { ch <- p.desc }

func (p *pending) Collect(ch chan<- prometheus.Metric) {
	c := p.counts()
	for name, n := range map[string]int{"active": c.Active, "backoff": c.Backoff, "unschedulable": c.Unschedulable, "gated": c.Gated} {
		ch <- prometheus.MustNewConstMetric(p.desc, prometheus.GaugeValue, float64(n), name)
	}
}
