package aggregator

import "github.com/prometheus/client_golang/prometheus"

// metrics count under upstream's names.
type metrics struct {
	lost *prometheus.CounterVec
	// unavailable is read from the index when somebody asks.
	unavailable unavailableCollector
}

func newMetrics(now func() *ServiceIndex) metrics {
	return metrics{
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aggregator_unavailable_apiservice_total",
			Help: "Counter of APIServices which are marked as unavailable broken down by APIService name and reason.",
		}, []string{"name", "reason"}),
		unavailable: unavailableCollector{now: now, desc: prometheus.NewDesc("aggregator_unavailable_apiservice",
			"Gauge of APIServices which are marked as unavailable broken down by APIService name.", []string{"name"},
			nil)},
	}
}

// Metrics are to be registered.
func (a *Aggregator) Metrics() []prometheus.Collector {
	return []prometheus.Collector{a.metrics.lost, a.metrics.unavailable}
}

type unavailableCollector struct {
	now  func() *ServiceIndex
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c unavailableCollector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c unavailableCollector) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.now().Services() {
		value := 1.0
		if s.Available() {
			value = 0
		}
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, value, s.Object.Name)
	}
}
