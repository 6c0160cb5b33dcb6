package configfile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are upstream's of the reloads of a file. A nil *Metrics counts nothing.
type Metrics struct {
	id       string // of the server, hashed
	reloads  *prometheus.CounterVec
	reloadAt *prometheus.GaugeVec
	inForce  *prometheus.GaugeVec
}

// NewMetrics registers those of what ("authorization") at r; nil: nothing is counted. serverID is that of the API
// server, which labels have as a hash.
func NewMetrics(r prometheus.Registerer, what, serverID string) *Metrics {
	if r == nil {
		return nil
	}
	prefix := "apiserver_" + what + "_config_controller_"
	m := &Metrics{id: Hash([]byte(serverID)),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "automatic_reloads_total",
			Help: "Reloads of the " + what + " configuration, by status and hashed identity of the API server."},
			[]string{"apiserver_id_hash", "status"}),
		reloadAt: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "automatic_reload_last_timestamp_seconds",
			Help: "Unix time of the last reload of the " + what +
				" configuration, by status and hashed identity of the API server."},
			[]string{"apiserver_id_hash", "status"}),
		inForce: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "last_config_info",
			Help: "1 for the " + what + " configuration in force, whose hash is a label."},
			[]string{"apiserver_id_hash", "hash"}),
	}
	r.MustRegister(m.reloads, m.reloadAt, m.inForce)
	return m
}

// Applied says which configuration is in force.
func (m *Metrics) Applied(hash string) {
	if m == nil {
		return
	}
	m.inForce.Reset()
	m.inForce.WithLabelValues(m.id, hash).Set(1)
}

func (m *Metrics) reloaded(ok bool, at time.Time) {
	if m == nil {
		return
	}
	status := "success"
	if !ok {
		status = "failure"
	}
	m.reloads.WithLabelValues(m.id, status).Inc()
	m.reloadAt.WithLabelValues(m.id, status).Set(float64(at.UnixNano()) / 1e9)
}
