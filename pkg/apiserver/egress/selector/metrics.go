package selector

import (
	"context"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count dials through proxies under Kubernetes' names.
type metrics struct {
	starts   *prometheus.CounterVec
	failures *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

// newMetrics registers at r; nil: nobody sees what is counted.
func newMetrics(r prometheus.Registerer) *metrics {
	const prefix = "apiserver_egress_dialer_"
	m := &metrics{
		starts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "dial_start_total",
			Help: "Dial starts, labeled by the protocol (http-connect or grpc) and transport (tcp or uds)."},
			[]string{"protocol", "transport"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "dial_failure_count",
			Help: "Dial failure count, labeled by the protocol (http-connect or grpc), transport (tcp or uds), and stage (connect or proxy). The stage indicates at which stage the dial failed"},
			[]string{"protocol", "transport", "stage"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "dial_duration_seconds",
			Help:    "Dial latency histogram in seconds, labeled by the protocol (http-connect or grpc), transport (tcp or uds)",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 2.5, 12.5}}, []string{"protocol", "transport"}),
	}
	if r != nil {
		r.MustRegister(m.starts, m.failures, m.duration)
	}
	return m
}

// counting returns dial with its calls counted. The duration is that of dials that succeed.
func (m *metrics) counting(protocol, transport string, dial Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		m.starts.WithLabelValues(protocol, transport).Inc()
		began := time.Now()
		conn, err := dial(ctx, network, addr)
		if err != nil {
			m.failures.WithLabelValues(protocol, transport, stageOf(err)).Inc()
			return nil, err
		}
		m.duration.WithLabelValues(protocol, transport).Observe(time.Since(began).Seconds())
		return conn, nil
	}
}
