package kubelet

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/kubelet/volume"
)

// volumeMetrics counts the node's volumes when it is scraped, and shows how full they were at the volume manager's last
// measurement, under Kubernetes' names.
//
// A scrape measures nothing. It could otherwise hang on a network volume whose server is gone.
type volumeMetrics struct {
	volumes interface {
		Usage() []volume.Usage
		Count() (desired, actual map[string]int)
	}
	total *prometheus.Desc
	usage []volumeFigure
}

// volumeFigure is one figure of a claim's file system.
type volumeFigure struct {
	desc *prometheus.Desc
	of   func(volume.Usage) uint64
}

func newVolumeMetrics(m *volume.Manager) *volumeMetrics {
	figure := func(name, help string, of func(volume.Usage) uint64) volumeFigure {
		return volumeFigure{prometheus.NewDesc("kubelet_volume_stats_"+name, help,
			[]string{"namespace", "persistentvolumeclaim"}, nil), of}
	}
	return &volumeMetrics{volumes: m,
		total: prometheus.NewDesc("volume_manager_total_volumes", "Volumes that pods are to have, and have.",
			[]string{"plugin_name", "state"}, nil),
		usage: []volumeFigure{
			figure("capacity_bytes", "Size of the claim's file system in bytes.", func(u volume.Usage) uint64 {
				return u.Capacity
			}),
			figure("available_bytes", "Bytes of it that can be used.", func(u volume.Usage) uint64 {
				return u.Available
			}),
			figure("used_bytes", "Bytes of it that are used.", func(u volume.Usage) uint64 { return u.Used }),
			figure("inodes", "Files that it can have.", func(u volume.Usage) uint64 { return u.Inodes }),
			figure("inodes_free", "Files that it can have beside those that it has.", func(u volume.Usage) uint64 {
				return u.InodesFree
			}),
			figure("inodes_used", "Files that it has.", func(u volume.Usage) uint64 { return u.InodesUsed }),
		}}
}

// Describe implements prometheus.Collector.
func (m *volumeMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.total
	for _, f := range m.usage {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (m *volumeMetrics) Collect(to chan<- prometheus.Metric) {
	desired, actual := m.volumes.Count()
	for state, counts := range map[string]map[string]int{"desired_state_of_world": desired,
		"actual_state_of_world": actual} {
		for name, n := range counts {
			to <- prometheus.MustNewConstMetric(m.total, prometheus.GaugeValue, float64(n), "kubernetes.io/"+name,
				state)
		}
	}
	for _, u := range m.volumes.Usage() {
		for _, f := range m.usage {
			to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, float64(f.of(u)), u.Claim.Namespace,
				u.Claim.Name)
		}
	}
}
