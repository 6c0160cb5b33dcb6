package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// volumes are how long volumes take, and what is left of those of pods that are gone.
type volumes struct {
	work     *prometheus.HistogramVec
	there    *prometheus.HistogramVec
	measured *prometheus.HistogramVec
	removed  prometheus.Gauge
	failed   prometheus.Gauge
}

func newVolumes(r prometheus.Registerer) *volumes {
	buckets := []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600}
	m := &volumes{
		work: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "storage_operation_duration_seconds",
			Help: "Seconds that work on a volume takes; status: success or fail-unknown.", Buckets: buckets},
			[]string{"volume_plugin", "operation_name", "status", "migrated"}),
		there: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "volume_operation_total_seconds",
			Help: "Seconds from the first try to give a pod its volumes to a volume's being there, with all tries that failed.", Buckets: buckets}, []string{"plugin_name", "operation_name"}),
		measured: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "kubelet_volume_metric_collection_duration_seconds",
				Help:    "Seconds that it takes to find out how full a volume is; metric_source: du, statfs or csi.",
				Buckets: prometheus.DefBuckets}, []string{"metric_source"}),
		removed: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_orphan_pod_cleaned_volumes",
				Help: "Pods that are gone whose volumes the last search found and removed."}),
		failed: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_orphan_pod_cleaned_volumes_errors",
				Help: "Pods that are gone whose volumes the last search found and could not remove."}),
	}
	r.MustRegister(m.work, m.there, m.measured, m.removed, m.failed)
	return m
}

// plugin is a source of volumes as metrics name it.
func plugin(source string) string { return "kubernetes.io/" + source }

// VolumeWork takes how long work on a volume took; source is its source's name.
func (m *volumes) VolumeWork(source, operation string, took time.Duration, err error) {
	status := "success"
	if err != nil {
		status = "fail-unknown"
	}
	m.work.WithLabelValues(plugin(source), operation, status, "false").Observe(took.Seconds())
}

// VolumeThere takes how long a pod waited for a volume.
func (m *volumes) VolumeThere(source string, took time.Duration) {
	m.there.WithLabelValues(plugin(source), "overall_volume_mount").Observe(took.Seconds())
}

// VolumeMeasured takes how long it took to find out how full a volume is, and by what that is known.
func (m *volumes) VolumeMeasured(by string, took time.Duration) {
	m.measured.WithLabelValues(by).Observe(took.Seconds())
}

// VolumesSwept takes of how many pods that are gone volumes were found and removed, and could not be.
func (m *volumes) VolumesSwept(removed, failed int) {
	m.removed.Set(float64(removed))
	m.failed.Set(float64(failed))
}
