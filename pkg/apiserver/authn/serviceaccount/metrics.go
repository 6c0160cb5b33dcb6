package serviceaccount

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts uses of tokens, under upstream's names. What the cache of tokens answers is not a use. A nil *Metrics
// counts nothing.
type Metrics struct {
	valid, stale, all, auto, manual, refused prometheus.Counter
}

// NewMetrics registers at r; nil: nothing is counted.
func NewMetrics(r prometheus.Registerer) *Metrics {
	if r == nil {
		return nil
	}
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "serviceaccount_" + name, Help: help})
		r.MustRegister(c)
		return c
	}
	return &Metrics{
		valid:   counter("valid_tokens_total", "Uses of bound tokens in the time that they were asked for."),
		stale:   counter("stale_tokens_total", "Uses of bound tokens after the time that they were asked for."),
		all:     counter("legacy_tokens_total", "Uses of tokens kept in secrets."),
		auto:    counter("legacy_auto_token_uses_total", "Uses of tokens in secrets that Kubernetes made by itself."),
		manual:  counter("legacy_manual_token_uses_total", "Uses of tokens in secrets that users made."),
		refused: counter("invalid_legacy_auto_token_uses_total", "Uses of tokens in secrets that are marked invalid."),
	}
}

func (m *Metrics) bound(stale bool) {
	switch {
	case m == nil:
	case stale:
		m.stale.Inc()
	default:
		m.valid.Inc()
	}
}

func (m *Metrics) legacy(auto bool) {
	if m == nil {
		return
	}
	m.all.Inc()
	if auto {
		m.auto.Inc()
	} else {
		m.manual.Inc()
	}
}

func (m *Metrics) invalid() {
	if m != nil {
		m.refused.Inc()
	}
}
