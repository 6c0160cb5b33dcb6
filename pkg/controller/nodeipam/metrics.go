package nodeipam

import "github.com/prometheus/client_golang/prometheus"

const subsystem = "node_ipam_controller_"

// metrics are upstream's, by its names, for each cluster CIDR. What is known of the sets is read when it is asked for.
type metrics struct {
	of                       *Controller
	tries                    *prometheus.HistogramVec
	given, back, usage, most *prometheus.Desc
}

func newMetrics(c *Controller) *metrics {
	label := []string{"clusterCIDR"}
	of := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(subsystem+name, help, label, nil) }
	out := &metrics{
		of: c,
		tries: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: subsystem + "cidrset_allocation_tries_per_request",
				Help:    "Ranges that were in use before a node got a free one.",
				Buckets: prometheus.ExponentialBuckets(1, 5, 5)}, label),
		given: of("cidrset_cidrs_allocations_total", "Ranges that were allocated, including those that nodes already had."),
		back:  of("cidrset_cidrs_releases_total", "Ranges that became free again."),
		usage: of("cidrset_usage_cidrs", "The part of all ranges that is taken, 0 to 1."),
		most:  of("cirdset_max_cidrs", "Ranges that are available for nodes in all."),
	}
	c.Metrics.Register(out.tries)
	c.Metrics.Register(out)
	return out
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.given, m.back, m.usage, m.most} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	m.of.mu.Lock()
	defer m.of.mu.Unlock()
	for _, s := range m.of.sets {
		show := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, t, v, s.base.String())
		}
		show(m.given, prometheus.CounterValue, float64(s.given))
		show(m.back, prometheus.CounterValue, float64(s.back))
		show(m.usage, prometheus.GaugeValue, float64(s.taken)/float64(s.n))
		show(m.most, prometheus.GaugeValue, float64(s.n))
	}
}
