package attachdetach

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/controller"
)

// metrics are upstream's, by its names: volumes that are attached and those that pods want attached are counted when it
// is asked for.
type metrics struct {
	of           *Controller
	forced       *prometheus.CounterVec
	total, inUse *prometheus.Desc
}

func newMetrics(c *Controller) *metrics {
	out := &metrics{
		of: c,
		forced: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "attach_detach_controller_attachdetach_controller_forced_detaches",
				Help: "Volumes that were detached from a node that did not report them as unmounted, by reason."},
			[]string{"reason"}),
		total: prometheus.NewDesc("attachdetach_controller_total_volumes",
			"Volumes that are attached to nodes, and those that pods want attached.", []string{"plugin_name", "state"},
			nil),
		inUse: prometheus.NewDesc("storage_count_attachable_volumes_in_use",
			"Volumes of each node's pods that have to be attached.", []string{"node", "volume_plugin"}, nil),
	}
	c.Metrics.Register(out.forced)
	c.Metrics.Register(out)
	return out
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.total
	to <- m.inUse
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	attached, wanted := map[string]int{}, map[string]int{}
	for _, a := range m.of.attachments.List() {
		if a.Status.Attached {
			attached[plugin(a.Spec.Attacher)]++
		}
	}
	for _, node := range m.of.podsByNode.Nodes() {
		for name, n := range m.of.wantedOf(node) {
			wanted[name] += n
			to <- prometheus.MustNewConstMetric(m.inUse, prometheus.GaugeValue, float64(n), node, name)
		}
	}
	for state, counts := range map[string]map[string]int{"actual_state_of_world": attached,
		"desired_state_of_world": wanted} {
		for name, n := range counts {
			to <- prometheus.MustNewConstMetric(m.total, prometheus.GaugeValue, float64(n), name, state)
		}
	}
}

// wantedOf counts the volumes that pods of a node want attached, by plug-in.
func (c *Controller) wantedOf(node string) map[string]int {
	volumes := map[string]string{} // their plug-ins by name: pods may share one
	for _, p := range c.podsByNode.On(node) {
		for i := range p.Spec.Volumes {
			if v := c.volumeOf(p, &p.Spec.Volumes[i]); v != nil && !controller.PodTerminal(p) {
				volumes[v.Name] = plugin(v.Spec.CSI.Driver)
			}
		}
	}
	counts := map[string]int{}
	for _, name := range volumes {
		counts[name]++
	}
	return counts
}

// plugin is what upstream calls the part of Kubernetes that a driver's volumes are for.
func plugin(driver string) string { return "kubernetes.io/csi:" + driver }
