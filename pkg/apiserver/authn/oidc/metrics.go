package oidc

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/configfile"
)

// Metrics are upstream's of JWT authenticators. A nil *Metrics counts nothing.
type Metrics struct {
	id      string // of the server, hashed
	latency *prometheus.HistogramVec
	fetches *prometheus.GaugeVec
	keySets *prometheus.GaugeVec
}

// NewMetrics registers at r; nil: nothing is counted. serverID is that of the API server, which labels have as a hash.
func NewMetrics(r prometheus.Registerer, serverID string) *Metrics {
	if r == nil {
		return nil
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		id: hash(serverID),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_authentication_jwt_authenticator_latency_seconds",
			Help:    "Seconds that the authentication of a JSON web token took, by result and hashed issuer.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}},
			[]string{"jwt_issuer_hash", "result"}),
		fetches: gauge("apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
			"Unix time of the last fetch of an issuer's keys, by result.",
			"apiserver_id_hash", "jwt_issuer_hash", "result"),
		keySets: gauge("apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info",
			"1 for the key set of an issuer, whose hash is a label.", "apiserver_id_hash", "hash", "jwt_issuer_hash"),
	}
	r.MustRegister(m.latency, m.fetches, m.keySets)
	return m
}

func hash(text string) string { return configfile.Hash([]byte(text)) }

// result is the label of what worked or did not.
func result(ok bool) string {
	if ok {
		return "success"
	}
	return "failure"
}

func (m *Metrics) authenticated(issuer string, ok bool, took time.Duration) {
	if m != nil {
		m.latency.WithLabelValues(hash(issuer), result(ok)).Observe(took.Seconds())
	}
}

// forget removes what is counted of an issuer that the configuration no longer names.
func (m *Metrics) forget(issuer string) {
	if m == nil {
		return
	}
	of := prometheus.Labels{"jwt_issuer_hash": hash(issuer)}
	m.latency.DeletePartialMatch(of)
	m.fetches.DeletePartialMatch(of)
	m.keySets.DeletePartialMatch(of)
}

// keys returns what counts the fetches of an issuer's keys.
func (m *Metrics) keys(issuer string, now func() time.Time) func(document []byte) {
	if m == nil {
		return func([]byte) {}
	}
	of := hash(issuer)
	return func(document []byte) {
		m.fetches.WithLabelValues(m.id, of, result(document != nil)).Set(float64(now().UnixNano()) / 1e9)
		if document != nil {
			m.keySets.DeletePartialMatch(prometheus.Labels{"jwt_issuer_hash": of})
			m.keySets.WithLabelValues(m.id, hash(string(document)), of).Set(1)
		}
	}
}
