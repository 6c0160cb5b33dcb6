package rootca

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/controller"
)

// metrics are upstream's, by its names. A label says what the API server answered: 200 where there was nothing to write
// or it was written, 500 where there was no answer.
type metrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
}

func newMetrics(m *controller.Metrics) *metrics {
	const subsystem = "root_ca_cert_publisher"
	label := []string{"code"}
	out := &metrics{
		total: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "sync_total",
				Help: "Looks at the map in a namespace, by the API server's answer."}, label),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Subsystem: subsystem, Name: "sync_duration_seconds",
			Help:    "Seconds of a look at the map in a namespace, by the API server's answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, label),
	}
	m.Register(out.total)
	m.Register(out.took)
	return out
}

// published counts a look at a namespace.
func (m *metrics) published(err error, took time.Duration) {
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
