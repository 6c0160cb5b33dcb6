package webhooks

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// metrics counts calls under upstream's names.
type metrics struct {
	duration                       *prometheus.HistogramVec
	requests, rejections, failOpen *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "apiserver_admission_webhook_admission_duration_seconds",
			Help:    "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
			Buckets: []float64{0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10, 25},
		}, []string{"name", "type", "operation", "rejected"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_webhook_request_total",
			Help: "Admission webhook request total, identified by name and broken out for each admission type (validating or mutating) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
		}, []string{"name", "type", "operation", "code", "rejected"}),
		rejections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_webhook_rejection_count",
			Help: "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
		}, []string{"name", "type", "operation", "error_type", "rejection_code"}),
		failOpen: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_admission_webhook_fail_open_count",
			Help: "Admission webhook fail open count, identified by name and broken out for each admission type (validating or mutating).",
		}, []string{"name", "type"}),
	}
	if r != nil {
		r.MustRegister(m.duration, m.requests, m.rejections, m.failOpen)
	}
	return m
}

// maxCode bounds the codes that become labels.
const maxCode = 600

// called counts one call and how it ended; ignored tells that its failure was.
func (m *metrics) called(name, kind, operation string, took time.Duration, err error, ignored bool) {
	code, errorType := 200, "no_error"
	var failed *callError
	var status apierrors.APIStatus
	switch {
	case err == nil:
	case errors.As(err, &failed):
		code, errorType = 0, "calling_webhook_error"
		if errors.As(failed.err, &status) {
			code = int(status.Status().Code)
		}
	case errors.As(err, &status):
		code = int(status.Status().Code)
		if apierrors.IsInternalError(err) {
			errorType = "apiserver_internal_error"
		}
	default:
		code, errorType = 0, "apiserver_internal_error"
	}
	code = min(code, maxCode)
	rejected := strconv.FormatBool(err != nil && !ignored)
	m.duration.WithLabelValues(name, kind, operation, rejected).Observe(took.Seconds())
	m.requests.WithLabelValues(name, kind, operation, strconv.Itoa(code), rejected).Inc()
	switch {
	case ignored:
		m.failOpen.WithLabelValues(name, kind).Inc()
	case err != nil:
		m.rejections.WithLabelValues(name, kind, operation, errorType, strconv.Itoa(code)).Inc()
	}
}
