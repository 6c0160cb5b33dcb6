package controller

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// SyncMetrics are those of a publisher, by upstream's names. A label says what the API server answered: 200 where there
// was nothing to write or it was written, 500 where there was no answer.
type SyncMetrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

// NewSyncMetrics registers the metrics of a subsystem. what says what a sync is of: "of the ConfigMap in a namespace".
func NewSyncMetrics(m *Metrics, subsystem, what string) *SyncMetrics {
	label := []string{"code"}
	out := &SyncMetrics{
		total: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "sync_total",
				Help: "Syncs " + what + ", by the API server's answer."}, label),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: subsystem, Name: "sync_duration_seconds",
			Help:    "Seconds of a sync " + what + ", by the API server's answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, label),
	}
	m.Register(out.total)
	m.Register(out.took)
	return out
}

// Synced counts a sync.
func (m *SyncMetrics) Synced(err error, took time.Duration) {
	code := http.StatusOK
	if err != nil {
		code = http.StatusInternalServerError
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code = int(status.Status().Code)
	}
	m.total.WithLabelValues(strconv.Itoa(code)).Inc()
	m.took.WithLabelValues(strconv.Itoa(code)).Observe(took.Seconds())
}
