package accessreview

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are upstream's of webhooks and their match conditions. A nil *Metrics counts nothing.
type Metrics struct {
	asks, failedOpen       *prometheus.CounterVec
	took, matching         *prometheus.HistogramVec
	matchErrors, excluding *prometheus.CounterVec
}

// kind is the label of the type of these authorizers.
const kind = "Webhook"

// NewMetrics registers at r; nil: nothing is counted.
func NewMetrics(r prometheus.Registerer) *Metrics {
	if r == nil {
		return nil
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_authorization_" + name, Help: help},
			labels)
		r.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "apiserver_authorization_" + name, Help: help,
			Buckets: buckets}, labels)
		r.MustRegister(h)
		return h
	}
	return &Metrics{
		asks: counter("webhook_evaluations_total", "Round-trips to authorization webhooks.", "name", "result"),
		failedOpen: counter("webhook_evaluations_fail_open_total", "NoOpinion results due to webhook timeout or error.",
			"name", "result"),
		took: histogram("webhook_duration_seconds", "Request latency in seconds.", prometheus.DefBuckets, "name",
			"result"),
		matching: histogram("match_condition_evaluation_seconds",
			"Authorization match condition evaluation time in seconds, split by authorizer type and name.",
			[]float64{.001, .005, .01, .025, .1, .2, .25}, "type", "name"),
		matchErrors: counter("match_condition_evaluation_errors_total",
			"Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.",
			"type", "name"),
		excluding: counter("match_condition_exclusions_total",
			"Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
			"type", "name"),
	}
}

// asked counts a question to a webhook; open reports that a failure left the decision to others.
func (m *Metrics) asked(name, result string, took time.Duration, open bool) {
	if m == nil {
		return
	}
	m.asks.WithLabelValues(name, result).Inc()
	m.took.WithLabelValues(name, result).Observe(took.Seconds())
	if open {
		m.failedOpen.WithLabelValues(name, result).Inc()
	}
}

// matched counts an evaluation of match conditions.
func (m *Metrics) matched(name string, took time.Duration, holds bool, err error) {
	if m == nil {
		return
	}
	m.matching.WithLabelValues(kind, name).Observe(took.Seconds())
	switch {
	case err != nil:
		m.matchErrors.WithLabelValues(kind, name).Inc()
	case !holds:
		m.excluding.WithLabelValues(kind, name).Inc()
	}
}
