package main

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/iptables"
	"bonsai/pkg/proxy/nft"
)

// metrics are upstream's of a mode.
type metrics struct {
	mode                          string
	took, fullTook, partiallyTook *prometheus.HistogramVec
	programmed                    *prometheus.HistogramVec
	synced, queued, noLocal       *prometheus.GaugeVec
	healthz, livez                *prometheus.CounterVec
	// Of the nftables mode.
	failed *prometheus.CounterVec
	// Of the iptables mode.
	total, last                    *prometheus.GaugeVec
	restoreFailed, partiallyFailed *prometheus.CounterVec
}

// newMetrics registers the metrics of a mode at r. Counts of changes are those of state.
func newMetrics(mode string, state *proxy.State, r prometheus.Registerer) *metrics {
	const ipFamily = "ip_family"
	buckets := prometheus.ExponentialBuckets(0.001, 2, 15)
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "kubeproxy_" + name, Help: help, Buckets: buckets}, []string{ipFamily})
		r.MustRegister(v)
		return v
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "kubeproxy_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubeproxy_" + name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	for what, of := range map[string]struct {
		name    string
		changes func() (total, pending int)
	}{"Service": {"service", state.ServiceChanges}, "Endpoint": {"endpoint", state.EndpointChanges}} {
		name := "kubeproxy_sync_proxy_rules_" + of.name + "_changes_"
		r.MustRegister(
			prometheus.NewCounterFunc(
				prometheus.CounterOpts{Name: name + "total", Help: "Cumulative proxy rules " + what + " changes"},
				func() float64 {
					total, _ := of.changes()
					return float64(total)
				}),
			prometheus.NewGaugeFunc(
				prometheus.GaugeOpts{Name: name + "pending", Help: "Pending proxy rules " + what + " changes"},
				func() float64 {
					_, pending := of.changes()
					return float64(pending)
				}))
	}
	m := &metrics{
		mode: mode,
		took: histogram("sync_proxy_rules_duration_seconds", "SyncProxyRules latency in seconds", buckets),
		fullTook: histogram("sync_full_proxy_rules_duration_seconds",
			"SyncProxyRules latency in seconds for full resyncs", buckets),
		partiallyTook: histogram("sync_partial_proxy_rules_duration_seconds",
			"SyncProxyRules latency in seconds for partial resyncs", buckets),
		programmed: histogram("network_programming_duration_seconds",
			"In Cluster Network Programming Latency in seconds", programmedBuckets()),
		synced: gauge("sync_proxy_rules_last_timestamp_seconds",
			"The last time proxy rules were successfully synced", ipFamily),
		queued: gauge("sync_proxy_rules_last_queued_timestamp_seconds",
			"The last time a sync of proxy rules was queued", ipFamily),
		noLocal: gauge("sync_proxy_rules_no_local_endpoints_total",
			"Number of services with a Local traffic policy and no endpoints", ipFamily, "traffic_policy"),
		healthz: counter("proxy_healthz_total", "Cumulative proxy healthz HTTP status", "code"),
		livez:   counter("proxy_livez_total", "Cumulative proxy livez HTTP status", "code"),
	}
	if mode == modeIPTables {
		m.total = gauge("sync_proxy_rules_iptables_total", "Total number of iptables rules owned by kube-proxy",
			"table", ipFamily)
		m.last = gauge("sync_proxy_rules_iptables_last", "Number of iptables rules written by kube-proxy in last sync",
			"table", ipFamily)
		m.restoreFailed = counter("sync_proxy_rules_iptables_restore_failures_total",
			"Cumulative proxy iptables restore failures", ipFamily)
		m.partiallyFailed = counter("sync_proxy_rules_iptables_partial_restore_failures_total",
			"Cumulative proxy iptables partial restore failures", ipFamily)
	} else {
		m.failed = counter("sync_proxy_rules_nftables_sync_failures_total", "Cumulative proxy nftables sync failures",
			ipFamily)
	}
	return m
}

// programmedBuckets are upstream's: quarters of a second up to five minutes, coarser as it takes longer.
func programmedBuckets() []float64 {
	out := []float64{0, 0.25, 0.5}
	for _, part := range [][3]float64{{1, 1, 59}, {60, 5, 12}, {120, 30, 7}} {
		out = append(out, prometheus.LinearBuckets(part[0], part[1], int(part[2]))...)
	}
	return out
}

// queue notes that there is something to write for n families.
func (m *metrics) queue(n int, now time.Time) {
	for _, f := range families[:n] {
		m.queued.WithLabelValues(f).Set(seconds(now))
	}
}

// done notes how a round of a family ended.
func (m *metrics) done(family string, took time.Duration, now time.Time, ok bool, refused int) {
	m.took.WithLabelValues(family).Observe(took.Seconds())
	if ok {
		m.synced.WithLabelValues(family).Set(seconds(now))
	}
	if m.failed != nil && (!ok || refused > 0) {
		m.failed.WithLabelValues(family).Inc()
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// wrote notes what a round of the nftables mode did.
func (m *metrics) wrote(r nft.Round) { m.observe(r.Six, r.Full, r.Took) }

func (m *metrics) observe(six, full bool, took time.Duration) {
	v := m.partiallyTook
	if full {
		v = m.fullTook
	}
	v.WithLabelValues(familyName(six)).Observe(took.Seconds())
}

// restored notes what a round of the iptables mode did. One that changed only a part and failed is followed by a whole
// one, and counts apart.
func (m *metrics) restored(r iptables.Round) {
	family := familyName(r.Six)
	m.observe(r.Six, r.Full, r.Took)
	if r.Err != nil {
		failed := m.partiallyFailed
		if r.Full {
			failed = m.restoreFailed
		}
		failed.WithLabelValues(family).Inc()
		return
	}
	for table, n := range r.Total {
		m.total.WithLabelValues(table, family).Set(float64(n))
		m.last.WithLabelValues(table, family).Set(float64(r.Last[table]))
	}
}

// observer looks at what was written for the metrics that are about the services themselves. It is a backend that comes
// after the others.
type observer struct {
	health *health
	// lacking has, for each service, how many ports of it have a policy Local and endpoints, but none here.
	lacking map[proxy.Name]lack
	sum     lack
}

// lack counts by family and by policy, internal before external.
type lack [len(families)][2]int

func (l *lack) add(other lack, sign int) {
	for f := range l {
		for p := range l[f] {
			l[f][p] += sign * other[f][p]
		}
	}
}

// lackOf counts the ports of a service.
func lackOf(ports []proxy.Port) (out lack) {
	for i := range ports {
		p := &ports[i]
		if !p.Anywhere || len(p.Local) > 0 {
			continue
		}
		family := 0
		if p.ClusterIP.Is6() {
			family = 1
		}
		if p.InternalLocal {
			out[family][0]++
		}
		if p.ExternalLocal && p.Exposed() {
			out[family][1]++
		}
	}
	return out
}

// Apply implements proxy.Backend.
func (o *observer) Apply(_ context.Context, u proxy.Update) error {
	for name, ports := range u.Services {
		o.sum.add(o.lacking[name], -1)
		next := lackOf(ports)
		if o.sum.add(next, 1); next == (lack{}) {
			delete(o.lacking, name)
		} else {
			o.lacking[name] = next
		}
	}
	m := o.health.metrics
	for i := range o.health.rounds {
		for p, policy := range [...]string{"internal", "external"} {
			m.noLocal.WithLabelValues(families[i], policy).Set(float64(o.sum[i][p]))
		}
	}
	for _, t := range u.Triggers {
		if o.health.written(t.Six) {
			m.programmed.WithLabelValues(familyName(t.Six)).Observe(o.health.now().Sub(t.At).Seconds())
		}
	}
	return nil
}
