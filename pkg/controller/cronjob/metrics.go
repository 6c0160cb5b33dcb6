package cronjob

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"

	"bonsai/api/batch"
	"bonsai/pkg/controller"
)

// metrics are upstream's, by its names.
type metrics struct{ skew prometheus.Histogram }

func newMetrics(m *controller.Metrics) *metrics {
	out := &metrics{skew: prometheus.NewHistogram(prometheus.HistogramOpts{
		Subsystem: "cronjob_controller", Name: "job_creation_skew_duration_seconds",
		Help:    "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
		Buckets: prometheus.ExponentialBuckets(1, 2, 10),
	})}
	m.Register(out.skew)
	return out
}

// created notes how late a job was made.
func (m *metrics) created(late time.Duration) { m.skew.Observe(late.Seconds()) }

func finished(j *batchv1.Job) bool { return batch.Finished(&j.Status) != nil }
