package manifests

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/configfile"
)

// Metrics are upstream's of the reloads of manifests. A nil *Metrics counts nothing.
type Metrics struct {
	id       string // of the server, hashed
	reloads  *prometheus.CounterVec
	reloadAt *prometheus.GaugeVec
	inForce  *prometheus.GaugeVec
}

// NewMetrics registers them at r; nil: nothing is counted. serverID is that of the API server, which labels have as a
// hash.
func NewMetrics(r prometheus.Registerer, serverID string) *Metrics {
	if r == nil {
		return nil
	}
	const prefix, by = "apiserver_manifest_admission_config_controller_",
		", by plug-in, status and hashed identity of the API server."
	m := &Metrics{id: configfile.Hash([]byte(serverID)),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "automatic_reloads_total",
			Help: "Reloads of the manifests of admission plug-ins" + by},
			[]string{"apiserver_id_hash", "plugin", "status"}),
		reloadAt: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "automatic_reload_last_timestamp_seconds",
			Help: "Unix time of the last reload of the manifests of an admission plug-in" + by},
			[]string{"apiserver_id_hash", "plugin", "status"}),
		inForce: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + "last_config_info",
			Help: "1 for the manifests in force of an admission plug-in, whose hash is a label."},
			[]string{"apiserver_id_hash", "hash", "plugin"}),
	}
	r.MustRegister(m.reloads, m.reloadAt, m.inForce)
	return m
}

// applied says which manifests of a plug-in are in force.
func (m *Metrics) applied(plugin, hash string) {
	if m == nil {
		return
	}
	m.inForce.DeletePartialMatch(prometheus.Labels{"plugin": plugin})
	m.inForce.WithLabelValues(m.id, hash, plugin).Set(1)
}

func (m *Metrics) reloaded(plugin string, ok bool, at time.Time) {
	if m == nil {
		return
	}
	status := "success"
	if !ok {
		status = "failure"
	}
	m.reloads.WithLabelValues(m.id, plugin, status).Inc()
	m.reloadAt.WithLabelValues(m.id, plugin, status).Set(float64(at.UnixNano()) / 1e9)
}
