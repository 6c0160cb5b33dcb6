package nodelifecycle

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/topology"
)

const subsystem = "node_collector"

// metrics are upstream's, by its names. What is known of the zones is read when it is asked for.
type metrics struct {
	of                      *Controller
	evictions               *prometheus.CounterVec
	survey, node            prometheus.Histogram
	size, health, unhealthy *prometheus.Desc
}

func newMetrics(c *Controller) *metrics {
	zone := []string{"zone"}
	histogram := func(name, help string, least float64) prometheus.Histogram {
		return prometheus.NewHistogram(
			prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help,
				Buckets: prometheus.ExponentialBuckets(least, 4, 8)})
	}
	out := &metrics{
		of: c,
		evictions: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "evictions_total",
				Help: "Nodes that got the taint that evicts their pods, by zone."}, zone),
		survey: histogram("update_all_nodes_health_duration_seconds",
			"Seconds of a check of all zones and their nodes.", 0.01),
		node: histogram("update_node_health_duration_seconds",
			"Seconds of an update of a node's conditions and taints from its heartbeats.", 0.001),
		size: prometheus.NewDesc(subsystem+"_zone_size", "Nodes of each zone.", zone, nil),
		health: prometheus.NewDesc(subsystem+"_zone_health", "Per cent of a zone's nodes that are ready.", zone,
			nil),
		unhealthy: prometheus.NewDesc(subsystem+"_unhealthy_nodes_in_zone", "Nodes of each zone that are not ready.",
			zone, nil),
	}
	c.Metrics.Register(out.evictions)
	c.Metrics.Register(out.survey)
	c.Metrics.Register(out.node)
	c.Metrics.Register(out)
	return out
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	to <- m.size
	to <- m.health
	to <- m.unhealthy
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	gauge := func(d *prometheus.Desc, v float64, zone string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, zone)
	}
	for _, z := range m.of.zones.known {
		gauge(m.size, float64(z.nodes), z.label)
		gauge(m.unhealthy, float64(len(z.failed)), z.label)
		gauge(m.health, 100*float64(z.nodes-len(z.failed))/float64(z.nodes), z.label)
	}
}

// surveyed notes a look at all nodes, and that their zones had no evictions before any.
func (m *metrics) surveyed(took time.Duration) {
	m.survey.Observe(took.Seconds())
	for _, z := range m.of.zones.known {
		m.evictions.WithLabelValues(z.label)
	}
}

// tainted counts a node whose taints were written, if they drive its pods away from now on.
func (m *metrics) tainted(was, n *corev1.Node) {
	if !evicting(was) && evicting(n) {
		m.evictions.WithLabelValues(zoneLabel(n)).Inc()
	}
}

// zoneLabel is how metrics name a node's zone: by its region, too, as upstream writes it.
func zoneLabel(n *corev1.Node) string { return topology.GetZoneKey(n) }
