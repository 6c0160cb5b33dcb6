package match

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts evaluations of match conditions under upstream's names.
type metrics struct {
	seconds          *prometheus.HistogramVec
	errors, excluded *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_match_condition_evaluation_errors_total",
			Help: "Admission match condition evaluation errors count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
		}, []string{"name", "kind", "type", "operation"}),
		excluded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_match_condition_exclusions_total",
			Help: "Admission match condition evaluation exclusions count, identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).",
		}, []string{"name", "kind", "type", "operation"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_admission_match_condition_evaluation_seconds",
			Help:    "Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25},
		}, []string{"name", "kind", "type", "operation"}),
	}
	if r != nil {
		r.MustRegister(m.errors, m.excluded, m.seconds)
	}
	return m
}

// conditions counts one evaluation.
func (m *metrics) conditions(by *Asker, operation string, took time.Duration, holds bool, err error) {
	m.seconds.WithLabelValues(by.Name, by.Kind, by.Type, operation).Observe(took.Seconds())
	switch {
	case err != nil:
		m.errors.WithLabelValues(by.Name, by.Kind, by.Type, operation).Inc()
	case !holds:
		m.excluded.WithLabelValues(by.Name, by.Kind, by.Type, operation).Inc()
	}
}
