package authz

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/resultmetrics"
)

// Metrics counts the decisions of authorizers under upstream's name. A nil *Metrics counts nothing.
type Metrics struct{ decisions *prometheus.CounterVec }

// NewMetrics registers at r; nil: nothing is counted.
func NewMetrics(r prometheus.Registerer) *Metrics {
	if r == nil {
		return nil
	}
	m := &Metrics{decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_authorization_decisions_total",
		Help: "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision."},
		[]string{"type", "name", "decision"})}
	r.MustRegister(m.decisions)
	return m
}

// Counted returns a that counts what it allows and denies.
func (m *Metrics) Counted(kind, name string, a Authorizer) Authorizer {
	if m == nil {
		return a
	}
	return counted{a, m.decisions.WithLabelValues(kind, name, "allowed"),
		m.decisions.WithLabelValues(kind, name, "denied")}
}

type counted struct {
	Authorizer
	allowed, denied prometheus.Counter
}

func (c counted) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	d, reason, err := c.Authorizer.Authorize(ctx, a)
	switch d {
	case Allow:
		c.allowed.Inc()
	case Deny:
		c.denied.Inc()
	}
	return d, reason, err
}

// Attempts counts requests by what authorization said of them, and how long it took, under upstream's names. A nil
// *Attempts counts nothing.
type Attempts struct{ allowed, denied, noOpinion, failed resultmetrics.Result }

// NewAttempts registers at r; nil: nothing is counted.
func NewAttempts(r prometheus.Registerer) *Attempts {
	if r == nil {
		return nil
	}
	of := resultmetrics.New(r, "result",
		prometheus.CounterOpts{Name: "authorization_attempts_total",
			Help: "[ALPHA] Counter of authorization attempts broken down by result. It can be either 'allowed', 'denied', 'no-opinion' or 'error'."},
		prometheus.HistogramOpts{Name: "authorization_duration_seconds",
			Help:    "[ALPHA] Authorization duration in seconds broken out by result.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)})
	return &Attempts{of("allowed"), of("denied"), of("no-opinion"), of("error")}
}

// Observe counts a request. An error counts unless the request is allowed all the same.
func (m *Attempts) Observe(d Decision, err error, took time.Duration) {
	if m == nil {
		return
	}
	of := &m.noOpinion
	switch {
	case d == Allow:
		of = &m.allowed
	case err != nil:
		of = &m.failed
	case d == Deny:
		of = &m.denied
	}
	of.Observe(took)
}
