package election

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what becomes of an election, under client-go's names.
type Metrics struct {
	leads prometheus.Gauge
	slow  prometheus.Counter
}

// NewMetrics registers the figures of the election of that name.
func NewMetrics(name string, r prometheus.Registerer) *Metrics {
	label := prometheus.Labels{"name": name}
	o := &Metrics{
		leads: prometheus.NewGauge(prometheus.GaugeOpts{Name: "leader_election_master_status", ConstLabels: label,
			Help: "1 while this process leads the election of this name, 0 while it is a candidate."}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{Name: "leader_election_slowpath_total", ConstLabels: label,
			Help: "Tries to take or renew the election's Lease that had to read it first."}),
	}
	r.MustRegister(o.leads, o.slow)
	return o
}

// Leading implements leader.Observer.
func (o *Metrics) Leading(now bool) {
	o.leads.Set(0)
	if now {
		o.leads.Set(1)
	}
}

// Read implements leader.Observer.
func (o *Metrics) Read() { o.slow.Inc() }
