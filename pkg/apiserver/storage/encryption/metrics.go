package encryption

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Directions of a transformation.
const (
	toStorage   = "to_storage"
	fromStorage = "from_storage"
)

// metrics counts transformations and reloads under Kubernetes' names.
type metrics struct {
	server     string
	operations *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	reloads    *prometheus.CounterVec
	lastReload *prometheus.GaugeVec
	lastConfig *prometheus.GaugeVec
	series     sync.Map // seriesLabels → *series
}

// seriesLabels identify a series. Resources and providers are those of configurations, and errors have few codes.
type seriesLabels struct {
	direction, resource, provider string
	code                          codes.Code
	failed                        bool
}

type series struct {
	total    prometheus.Counter
	duration prometheus.Observer
}

func newMetrics(r prometheus.Registerer, server string) *metrics {
	const controller = "apiserver_encryption_config_controller_"
	m := &metrics{server: server,
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_storage_transformation_operations_total",
			Help: "Total number of transformations. Successful transformation will have a status 'OK' and a varied status string when the transformation fails. The status, resource, and transformation_type fields can be used for alerting purposes. For example, you can monitor for encryption/decryption failures using the transformation_type (e.g., from_storage for decryption and to_storage for encryption). Additionally, these fields can be used to ensure that the correct transformers are applied to each resource."},
			[]string{"resource", "transformation_type", "transformer_prefix", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_storage_transformation_duration_seconds",
			Help:    "Latencies in seconds of value transformation operations.",
			Buckets: prometheus.ExponentialBuckets(5e-6, 2, 25)},
			[]string{"transformation_type", "transformer_prefix"}),
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Name: controller + "automatic_reloads_total",
			Help: "Total number of reload successes and failures of encryption configuration split by apiserver identity."},
			[]string{"status", "apiserver_id_hash"}),
		lastReload: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: controller + "automatic_reload_last_timestamp_seconds",
			Help: "Timestamp of the last successful or failed automatic reload of encryption configuration split by apiserver identity."},
			[]string{"status", "apiserver_id_hash"}),
		lastConfig: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: controller + "last_config_info",
			Help: "Information about the last applied encryption configuration with hash as label, split by apiserver identity."},
			[]string{"apiserver_id_hash", "hash"}),
	}
	r.MustRegister(m.operations, m.duration, m.reloads, m.lastReload, m.lastConfig)
	return m
}

// transformed counts one transformation.
func (m *metrics) transformed(direction, resource, provider string, took time.Duration, err error) {
	l := seriesLabels{direction: direction, resource: resource, provider: provider, failed: err != nil}
	if err != nil {
		l.code = status.Code(err)
	}
	s, ok := m.series.Load(l)
	if !ok {
		if provider == "" {
			provider = "identity"
		}
		s, _ = m.series.LoadOrStore(l, &series{
			total:    m.operations.WithLabelValues(resource, direction, provider, l.status(err)),
			duration: m.duration.WithLabelValues(direction, provider)})
	}
	s.(*series).total.Inc()
	if err == nil {
		s.(*series).duration.Observe(took.Seconds())
	}
}

// status is the label of a result.
func (l *seriesLabels) status(err error) string {
	if _, ok := status.FromError(err); !ok {
		return "unknown-non-grpc"
	}
	return l.code.String()
}

// applied tells that a configuration is in force.
func (m *metrics) applied(hash string) {
	m.lastConfig.Reset()
	m.lastConfig.WithLabelValues(m.server, hash).Set(1)
}

// reloaded counts a reload that came out well, or did not.
func (m *metrics) reloaded(err error) {
	result := "success"
	if err != nil {
		result = "failure"
	}
	m.reloads.WithLabelValues(result, m.server).Inc()
	m.lastReload.WithLabelValues(result, m.server).SetToCurrentTime()
}
