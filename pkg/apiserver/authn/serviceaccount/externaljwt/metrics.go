package externaljwt

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/safetext"
)

// metrics counts calls to the signer, under Kubernetes' names.
type metrics struct {
	fetched, data prometheus.Gauge
	fetches       *prometheus.CounterVec
	signs         *prometheus.CounterVec
	duration      *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	const prefix = "apiserver_externaljwt_"
	m := &metrics{
		fetched: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "fetch_keys_success_timestamp",
			Help: "Unix Timestamp in seconds of the last successful FetchKeys request"}),
		data: prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + "fetch_keys_data_timestamp",
			Help: "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the external signer"}),
		fetches: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "fetch_keys_request_total",
			Help: "Total attempts at syncing supported JWKs"}, []string{"code"}),
		signs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "sign_request_total",
			Help: "Total attempts at signing JWT"}, []string{"code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + "request_duration_seconds",
			Help:    "Request duration and time for calls to external-jwt-signer",
			Buckets: []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}},
			[]string{"method", "code"}),
	}
	r.MustRegister(m.fetched, m.data, m.fetches, m.signs, m.duration)
	return m
}

// called counts one call.
func (m *metrics) called(method string, took time.Duration, err error) {
	m.duration.WithLabelValues(method, code(err)).Observe(took.Seconds())
}

// signed and keysFetched count what came of a call, with what was found wrong with the answer.
func (m *metrics) signed(err error) { m.signs.WithLabelValues(code(err)).Inc() }

func (m *metrics) keysFetched(err error) { m.fetches.WithLabelValues(code(err)).Inc() }

// code is the gRPC code of an error, or says that the error is none of gRPC.
func code(err error) string {
	if c, ok := safetext.CodeOf(err); ok {
		return c.String()
	}
	return "unknown-non-grpc"
}
