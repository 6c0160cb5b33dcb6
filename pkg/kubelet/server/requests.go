package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requests counts the requests of clients, under upstream's names.
type requests struct {
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inflight *prometheus.GaugeVec
}

func newRequests(r prometheus.Registerer) *requests {
	labels := []string{"method", "path", "server_type", "long_running"}
	m := &requests{
		total: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "kubelet_http_requests_total", Help: "Requests of the kubelet's HTTPS API."},
			labels),
		seconds: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "kubelet_http_requests_duration_seconds",
				Help:    "Seconds that requests of the kubelet's HTTPS API take.",
				Buckets: prometheus.DefBuckets}, labels),
		inflight: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "kubelet_http_inflight_requests",
				Help: "Requests of the kubelet's HTTPS API that are being answered."}, labels),
	}
	r.MustRegister(m.total, m.seconds, m.inflight)
	return m
}

// counted counts the requests that next answers.
func (m *requests) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := pathLabel(r.URL.Path)
		labels := []string{methodLabel(r.Method), path, "readwrite", strconv.FormatBool(longRunning(path))}
		m.total.WithLabelValues(labels...).Inc()
		now := m.inflight.WithLabelValues(labels...)
		now.Inc()
		begun := time.Now()
		defer func() {
			now.Dec()
			m.seconds.WithLabelValues(labels...).Observe(time.Since(begun).Seconds())
		}()
		next.ServeHTTP(w, r)
	})
}

// pathLabel returns the first part of a path that the server knows, for metrics with the second part. Any other path is
// "other", so that clients cannot create any number of series.
func pathLabel(path string) string {
	first, rest, _ := strings.Cut(strings.Trim(path, "/"), "/")
	switch first {
	case "metrics":
		switch rest {
		case "cadvisor", "probes", "resource", "slis":
			return first + "/" + rest
		}
		return first
	case "attach", "checkpoint", "configz", "containerLogs", "exec", "healthz", "logs", "pods", "portForward", "run",
		"runningpods", "stats":
		return first
	}
	return "other"
}

func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead,
		http.MethodOptions:
		return method
	}
	return "other"
}

// longRunning reports whether requests of a path last as long as the client likes.
func longRunning(path string) bool {
	switch path {
	case "attach", "exec", "portForward", "containerLogs", "run":
		return true
	}
	return false
}
