package certificate

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts for one certificate, under upstream's names. A nil *Metrics counts nothing.
type Metrics struct {
	registry prometheus.Registerer
	ttl      prometheus.GaugeOpts
	failures prometheus.Counter
	rotation prometheus.Histogram // nil: not counted
}

// NewClientMetrics registers the client certificate's metrics at r.
func NewClientMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{registry: r,
		ttl: prometheus.GaugeOpts{Name: "kubelet_certificate_manager_client_ttl_seconds",
			Help: "Seconds until the client certificate expires, negative if it has; +Inf if there is none."},
		failures: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_certificate_manager_client_expiration_renew_errors",
				Help: "Renewals of the client certificate that failed."})}
	r.MustRegister(m.failures)
	return m
}

// NewServingMetrics registers the serving certificate's metrics at r.
func NewServingMetrics(r prometheus.Registerer) *Metrics {
	const day = 24 * 60 * 60
	m := &Metrics{registry: r,
		ttl: prometheus.GaugeOpts{Name: "kubelet_certificate_manager_server_ttl_seconds",
			Help: "Seconds until the serving certificate expires, negative if it has; +Inf if there is none."},
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_server_expiration_renew_errors",
			Help: "Renewals of the serving certificate that failed."}),
		rotation: prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: "kubelet_certificate_manager_server_rotation_seconds",
				Help: "Seconds that serving certificates lived before they were renewed.",
				Buckets: []float64{60, 3600, 4 * 3600, day, 7 * day, 30 * day, 90 * day, 180 * day, 365 * day,
					4 * 365 * day}})}
	r.MustRegister(m.failures, m.rotation)
	return m
}

// expires has the certificate's remaining life told.
func (m *Metrics) expires(end func() (time.Time, bool), now func() time.Time) {
	if m == nil {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(m.ttl, func() float64 {
		at, ok := end()
		if !ok {
			return math.Inf(1)
		}
		return at.Sub(now()).Seconds()
	}))
}

func (m *Metrics) failed() {
	if m != nil {
		m.failures.Inc()
	}
}

func (m *Metrics) rotated(age time.Duration) {
	if m != nil && m.rotation != nil {
		m.rotation.Observe(age.Seconds())
	}
}
