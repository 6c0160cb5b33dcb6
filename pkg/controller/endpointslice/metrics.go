package endpointslice

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/backends"
)

const subsystem = "endpoint_slice_controller"

// metrics are upstream's, by its names.
type metrics struct {
	*backends.Metrics
	syncs   *prometheus.CounterVec
	written *prometheus.HistogramVec
	asked   *prometheus.Desc
}

func newMetrics(m *controller.Metrics) *metrics {
	out := &metrics{
		Metrics: backends.NewMetrics(m, subsystem),
		syncs: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "syncs",
				Help: "Syncs of Services, by result."}, []string{"result"}),
		written: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Subsystem: subsystem, Name: "endpointslices_changed_per_sync",
				Help: "EndpointSlices that a sync of a Service wrote."},
			[]string{"topology", "traffic_distribution"}),
		asked: prometheus.NewDesc(subsystem+"_services_count_by_traffic_distribution",
			"Services that ask for each distribution of their traffic.", []string{"traffic_distribution"}, nil),
	}
	m.Register(out.syncs)
	m.Register(out.written)
	m.Register(out)
	return out
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) { to <- m.asked }

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	for name, n := range m.Distributions() {
		to <- prometheus.MustNewConstMetric(m.asked, prometheus.GaugeValue, float64(n), name)
	}
}

// synced counts a look at a Service. stale is one that was put off, because the cache does not show yet what was
// written.
func (m *metrics) synced(stale bool, err error) {
	result := "success"
	switch {
	case stale:
		result = "stale"
	case err != nil:
		result = "error"
	}
	m.syncs.WithLabelValues(result).Inc()
}

// planned counts what a look at a Service is about to write.
func (m *metrics) planned(svc *corev1.Service, t tally) {
	topology := "Disabled"
	if modeAuto(svc) {
		topology = "Auto"
	}
	m.written.WithLabelValues(topology, ptr.Deref(svc.Spec.TrafficDistribution, "")).Observe(float64(t.writes))
	m.Moved(t.added, t.removed)
	t.size.Distribution = ptr.Deref(svc.Spec.TrafficDistribution, "")
	m.Set(controller.KeyOf(svc), t.size)
}

// tally adds up what is planned for the families of a Service.
type tally struct {
	size                   backends.Size
	added, removed, writes int
}

// add counts the plan of one family.
func (t *tally) add(wanted map[string]*portGroup, have []*discoveryv1.EndpointSlice, p changes, most int) {
	for _, g := range wanted {
		t.size.Endpoints += len(g.endpoints)
		t.size.Ideal += backends.Ideal(len(g.endpoints), most)
	}
	if len(wanted) == 0 {
		t.size.Ideal++ // an empty one
	}
	t.size.Slices += len(have) + len(p.create) - len(p.remove)
	writes := len(p.create) + len(p.update) + len(p.remove)
	t.writes += writes
	if writes == 0 {
		return
	}
	before := map[string]bool{}
	for _, s := range have {
		for _, e := range s.Endpoints {
			before[endpointKey(e)] = true
		}
	}
	for _, g := range wanted {
		for _, e := range g.endpoints {
			if key := endpointKey(e); before[key] {
				delete(before, key)
			} else {
				t.added++
			}
		}
	}
	t.removed += len(before)
}
