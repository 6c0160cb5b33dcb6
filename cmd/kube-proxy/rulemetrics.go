package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/proxy/iptables"
)

// ruleMetrics are upstream's of the iptables mode.
type ruleMetrics struct {
	total, last             *prometheus.GaugeVec
	failed, partialFailed   *prometheus.CounterVec
	fullTook, partiallyTook *prometheus.HistogramVec
}

func newRuleMetrics() *ruleMetrics {
	const family = "ip_family"
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	return &ruleMetrics{
		total:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubeproxy_sync_proxy_rules_iptables_total", Help: "Total number of iptables rules owned by kube-proxy"}, []string{"table", family}),
		last:          prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubeproxy_sync_proxy_rules_iptables_last", Help: "Number of iptables rules written by kube-proxy in last sync"}, []string{"table", family}),
		failed:        prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubeproxy_sync_proxy_rules_iptables_restore_failures_total", Help: "Cumulative proxy iptables restore failures"}, []string{family}),
		partialFailed: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total", Help: "Cumulative proxy iptables partial restore failures"}, []string{family}),
		fullTook:      prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kubeproxy_sync_full_proxy_rules_duration_seconds", Help: "SyncProxyRules latency in seconds for full resyncs", Buckets: buckets}, []string{family}),
		partiallyTook: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kubeproxy_sync_partial_proxy_rules_duration_seconds", Help: "SyncProxyRules latency in seconds for partial resyncs", Buckets: buckets}, []string{family}),
	}
}

func (m *ruleMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.total, m.last, m.failed, m.partialFailed, m.fullTook, m.partiallyTook}
}

// observe counts a round. One that changed only a part and failed is followed by a whole one, and counts apart.
func (m *ruleMetrics) observe(r iptables.Round) {
	family := "IPv4"
	if r.Six {
		family = "IPv6"
	}
	failed, took := m.partialFailed, m.partiallyTook
	if r.Full {
		failed, took = m.failed, m.fullTook
	}
	took.WithLabelValues(family).Observe(r.Took.Seconds())
	if r.Err != nil {
		failed.WithLabelValues(family).Inc()
		return
	}
	for table, n := range r.Total {
		m.total.WithLabelValues(table, family).Set(float64(n))
		m.last.WithLabelValues(table, family).Set(float64(r.Last[table]))
	}
}
