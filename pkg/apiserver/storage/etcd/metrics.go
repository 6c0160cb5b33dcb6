package etcd

import (
	"context"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Metrics counts requests to etcd by operation and resource, under upstream's names.
type Metrics struct {
	total, failed *prometheus.CounterVec
	duration      *prometheus.HistogramVec
	resource      func(key string) schema.GroupResource
}

// NewMetrics registers the metrics at r. resource tells whose key, or prefix of keys, it is; it has a bounded number of
// answers.
func NewMetrics(r prometheus.Registerer, resource func(key string) schema.GroupResource) *Metrics {
	labels := []string{"operation", "group", "resource"}
	m := &Metrics{resource: resource,
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etcd_requests_total",
			Help: "[ALPHA] Requests to etcd, by operation and resource."}, labels),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "etcd_request_errors_total",
			Help: "[ALPHA] Requests to etcd that failed, by operation and resource."}, labels),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "etcd_request_duration_seconds",
			Help: "[ALPHA] Seconds that a request to etcd took, by operation and resource.",
			Buckets: []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20,
				30, 45, 60}}, labels)}
	r.MustRegister(m.total, m.failed, m.duration)
	return m
}

// Observe counts a request; it is a Config.Observe. What concerns no resource, such as a compaction, is not counted, as
// upstream.
func (m *Metrics) Observe(operation, key string, took time.Duration, err error) {
	if !strings.HasPrefix(key, keyRoot+"/") {
		return
	}
	gr := m.resource(key)
	m.total.WithLabelValues(operation, gr.Group, gr.Resource).Inc()
	m.duration.WithLabelValues(operation, gr.Group, gr.Resource).Observe(took.Seconds())
	if err != nil {
		m.failed.WithLabelValues(operation, gr.Group, gr.Resource).Inc()
	}
}

// Size returns the bytes that the database of a store's etcd takes on the disk.
func Size(ctx context.Context, s *Store) (bytes int64, err error) {
	err = s.do(ctx, "status", "", func(ctx context.Context) error {
		resp, err := s.status.Status(ctx, &pb.StatusRequest{}, s.call...)
		if err == nil {
			bytes = resp.DbSize
		}
		return err
	})
	return bytes, err
}
