package credentialprovider

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what providers' programs do, under upstream's names. A nil *Metrics counts nothing.
type Metrics struct {
	seconds *prometheus.HistogramVec
	errors  *prometheus.CounterVec
}

// NewMetrics registers at r; nil: nothing is counted.
func NewMetrics(r prometheus.Registerer) *Metrics {
	if r == nil {
		return nil
	}
	m := &Metrics{
		seconds: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "kubelet_credential_provider_plugin_duration",
				Help: "Seconds that programs of credential providers take.", Buckets: prometheus.DefBuckets},
			[]string{"plugin_name"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_credential_provider_plugin_errors",
			Help: "Programs of credential providers that failed."}, []string{"plugin_name"}),
	}
	r.MustRegister(m.seconds, m.errors)
	return m
}

func (m *Metrics) ran(provider string, took time.Duration, err error) {
	if m == nil {
		return
	}
	m.seconds.WithLabelValues(provider).Observe(took.Seconds())
	if err != nil {
		m.errors.WithLabelValues(provider).Inc()
	}
}
