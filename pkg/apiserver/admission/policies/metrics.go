package policies

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/api/admissionregistration/expression"
)

// metrics counts evaluations under upstream's names.
type metrics struct {
	validations, mutations             *prometheus.CounterVec
	validationSeconds, mutationSeconds *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	buckets := []float64{0.0000005, 0.001, 0.01, 0.1, 1.0}
	m := &metrics{
		validations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_validating_admission_policy_check_total",
			Help: "Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.",
		}, []string{"policy", "policy_binding", "error_type", "enforcement_action"}),
		validationSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_validating_admission_policy_check_duration_seconds",
			Help:    "Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
			Buckets: buckets,
		}, []string{"policy", "policy_binding", "error_type", "enforcement_action"}),
		mutations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_mutating_admission_policy_check_total",
			Help: "Mutation admission policy check total, labeled by policy and further identified by binding.",
		}, []string{"policy", "policy_binding", "error_type"}),
		mutationSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_mutating_admission_policy_check_duration_seconds",
			Help:    "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
			Buckets: buckets,
		}, []string{"policy", "policy_binding", "error_type"}),
	}
	if r != nil {
		r.MustRegister(m.validations, m.validationSeconds, m.mutations, m.mutationSeconds)
	}
	return m
}

// validated counts what a validation that did not pass led to: "deny", "warn", "audit", or "allow" for an error that is
// ignored.
func (m *metrics) validated(policy, binding, action string, took time.Duration, err error) {
	kind := errorType(err)
	m.validations.WithLabelValues(policy, binding, kind, action).Inc()
	m.validationSeconds.WithLabelValues(policy, binding, kind, action).Observe(took.Seconds())
}

// mutated counts a mutation.
func (m *metrics) mutated(policy, binding string, took time.Duration, err error) {
	kind := "no_error"
	if err != nil {
		kind = errorType(err)
	}
	m.mutations.WithLabelValues(policy, binding, kind).Inc()
	m.mutationSeconds.WithLabelValues(policy, binding, kind).Observe(took.Seconds())
}

// errorType: upstream counts a validation that failed as an error, too.
func errorType(err error) string {
	if errors.Is(err, expression.ErrBudget) {
		return "out_of_budget"
	}
	return "invalid_error"
}
