package authz

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
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
