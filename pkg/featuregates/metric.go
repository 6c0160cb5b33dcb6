package featuregates

import "github.com/prometheus/client_golang/prometheus"

// metric is kubernetes_feature_enabled: a series for each gate, 1 if the feature is there. What settings asked for does
// not count.
type metric struct {
	desc   *prometheus.Desc
	series []prometheus.Metric
}

// NewMetric returns the metric of every component, kubernetes_feature_enabled.
func NewMetric() prometheus.Collector {
	m := &metric{desc: prometheus.NewDesc("kubernetes_feature_enabled",
		"1 if a feature is enabled, 0 if not.", []string{"name", "stage"}, nil)}
	for name, spec := range fresh().GetAll() {
		value := 0.0
		if spec.Default {
			value = 1
		}
		m.series = append(m.series,
			prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value, string(name), string(spec.PreRelease)))
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *metric) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect implements prometheus.Collector.
func (m *metric) Collect(ch chan<- prometheus.Metric) {
	for _, s := range m.series {
		ch <- s
	}
}
