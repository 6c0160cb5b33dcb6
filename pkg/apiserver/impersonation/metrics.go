package impersonation

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count attempts of callers, and questions to the authorizer, under Kubernetes' names.
type metrics struct {
	attempts, questions         *prometheus.CounterVec
	attemptsTook, questionsTook *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	labels := []string{"mode", "decision"}
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		attempts: counter("apiserver_impersonation_attempts_total",
			"Total number of impersonation attempts split by mode and decision."),
		attemptsTook: histogram("apiserver_impersonation_attempts_duration_seconds",
			"Latency of impersonation attempts in seconds split by mode and decision."),
		questions: counter("apiserver_impersonation_authorization_attempts_total",
			"Total number of authorization checks made by the impersonation handler split by mode and decision."),
		questionsTook: histogram("apiserver_impersonation_authorization_attempts_duration_seconds",
			"Latency of authorization checks made by the impersonation handler in seconds split by mode and decision."),
	}
	r.MustRegister(m.attempts, m.attemptsTook, m.questions, m.questionsTook)
	return m
}

func decision(allowed bool) string {
	if allowed {
		return "allowed"
	}
	return "denied"
}

func (m *metrics) attempt(mode string, allowed bool, took time.Duration) {
	m.attempts.WithLabelValues(mode, decision(allowed)).Inc()
	m.attemptsTook.WithLabelValues(mode, decision(allowed)).Observe(took.Seconds())
}

func (m *metrics) question(mode string, allowed bool, took time.Duration) {
	m.questions.WithLabelValues(mode, decision(allowed)).Inc()
	m.questionsTook.WithLabelValues(mode, decision(allowed)).Observe(took.Seconds())
}
