package kms

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"bonsai/pkg/safetext"
)

// Directions of a transformation, as metrics name them.
const (
	toStorage   = "to_storage"
	fromStorage = "from_storage"
)

// maxKeyIDs bounds the key IDs that have series of their own. A service has few; a storage that somebody wrote to could
// have any.
const maxKeyIDs = 100

// Metrics counts what KMS providers do, under Kubernetes' names. nil counts nothing.
type Metrics struct {
	server     string
	keyIDs     *prometheus.CounterVec
	lastUsed   *prometheus.GaugeVec
	lastStatus *prometheus.GaugeVec
	invalid    *prometheus.CounterVec
	cached     *prometheus.GaugeVec
	latency    *prometheus.HistogramVec
	generation prometheus.Histogram
	failures   prometheus.Counter

	mu    sync.Mutex
	known map[usedLabels]*usedSeries
}

type usedLabels struct{ direction, provider, keyID string }

type usedSeries struct {
	total prometheus.Counter
	last  prometheus.Gauge
}

// NewMetrics registers the metrics of all KMS providers of the server that server identifies.
func NewMetrics(r prometheus.Registerer, server string) *Metrics {
	const subsystem = "apiserver_envelope_encryption_"
	m := &Metrics{server: server, known: map[usedLabels]*usedSeries{},
		keyIDs: prometheus.NewCounterVec(prometheus.CounterOpts{Name: subsystem + "key_id_hash_total",
			Help: "Number of times a keyID is used split by transformation type, provider, and apiserver identity."},
			[]string{"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"}),
		lastUsed: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: subsystem + "key_id_hash_last_timestamp_seconds",
			Help: "The last time in seconds when a keyID was used."},
			[]string{"transformation_type", "provider_name", "key_id_hash", "apiserver_id_hash"}),
		lastStatus: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: subsystem + "key_id_hash_status_last_timestamp_seconds",
			Help: "The last time in seconds when a keyID was returned by the Status RPC call."},
			[]string{"provider_name", "key_id_hash", "apiserver_id_hash"}),
		invalid: prometheus.NewCounterVec(prometheus.CounterOpts{Name: subsystem + "invalid_key_id_from_status_total",
			Help: "Number of times an invalid keyID is returned by the Status RPC call split by error."},
			[]string{"provider_name", "error"}),
		cached: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: subsystem + "dek_source_cache_size",
			Help: "Number of records in data encryption key (DEK) source cache. On a restart, this value is an approximation of the number of decrypt RPC calls the server will make to the KMS plugin."},
			[]string{"provider_name"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: subsystem + "kms_operations_latency_seconds",
			Help:    "KMS operation duration with gRPC error code status total.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 20)},
			[]string{"provider_name", "method_name", "grpc_status_code"}),
	}
	m.generation = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "apiserver_storage_data_key_generation_duration_seconds",
		Help:    "Latencies in seconds of data encryption key(DEK) generation operations.",
		Buckets: prometheus.ExponentialBuckets(5e-6, 2, 14)})
	m.failures = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_storage_data_key_generation_failures_total",
		Help: "Total number of failed data encryption key(DEK) generation operations."})
	r.MustRegister(m.keyIDs, m.lastUsed, m.lastStatus, m.invalid, m.cached, m.latency, m.generation, m.failures)
	return m
}

// used counts that a value was transformed by a key.
func (m *Metrics) used(provider, direction, keyID string) {
	if m == nil {
		return
	}
	l := usedLabels{direction, provider, keyID}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.known[l]
	if s == nil {
		if len(m.known) >= maxKeyIDs {
			m.keyIDs.Reset()
			m.lastUsed.Reset()
			clear(m.known)
		}
		hash := keyHash(keyID)
		s = &usedSeries{m.keyIDs.WithLabelValues(direction, provider, hash, m.server),
			m.lastUsed.WithLabelValues(direction, provider, hash, m.server)}
		m.known[l] = s
	}
	s.total.Inc()
	s.last.SetToCurrentTime()
}

// statusKeyID tells that the plug-in has named a key.
func (m *Metrics) statusKeyID(provider, keyID string) {
	if m != nil {
		m.lastStatus.DeletePartialMatch(prometheus.Labels{"provider_name": provider})
		m.lastStatus.WithLabelValues(provider, keyHash(keyID), m.server).SetToCurrentTime()
	}
}

// invalidKeyID counts a name of a key that is none.
func (m *Metrics) invalidKeyID(provider string, err error) {
	if m == nil {
		return
	}
	code := "keyid_too_long"
	if errors.Is(err, errNoKeyID) {
		code = "keyid_empty"
	}
	m.invalid.WithLabelValues(provider, code).Inc()
}

// generated counts that a seed was made, or could not be.
func (m *Metrics) generated(took time.Duration, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.failures.Inc()
	default:
		m.generation.Observe(took.Seconds())
	}
}

// sources tells how many sources are kept opened.
func (m *Metrics) sources(provider string, n int) {
	if m != nil {
		m.cached.WithLabelValues(provider).Set(float64(n))
	}
}

// operation counts one call.
func (m *Metrics) operation(provider, method string, took time.Duration, err error) {
	if m != nil {
		m.latency.WithLabelValues(provider, method, safetext.Code(status.Code(err)).String()).Observe(took.Seconds())
	}
}
