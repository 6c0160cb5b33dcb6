package backends

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/controller"
)

// Size is how much there is of one Service.
type Size struct {
	// Slices is how many EndpointSlices it has, Ideal how many would do for its Endpoints.
	Slices, Ideal, Endpoints int
	// Distribution is the Service's spec.trafficDistribution, "" without one.
	Distribution string
}

// Metrics counts what a controller of EndpointSlices does, under upstream's names.
type Metrics struct {
	changes        *prometheus.CounterVec
	added, removed prometheus.Histogram

	mu           sync.Mutex
	sizes        map[controller.Key]Size
	total        Size
	distribution map[string]int
}

// NewMetrics registers the figures of the controller that subsystem names.
func NewMetrics(m *controller.Metrics, subsystem string) *Metrics {
	out := &Metrics{sizes: map[controller.Key]Size{}, distribution: map[string]int{},
		changes: prometheus.NewCounterVec(
			prometheus.CounterOpts{Subsystem: subsystem, Name: "changes",
				Help: "EndpointSlices that were written, by operation."}, []string{"operation"}),
		added:   PerSync(subsystem, "endpoints_added_per_sync", "Endpoints that a sync of a Service added."),
		removed: PerSync(subsystem, "endpoints_removed_per_sync", "Endpoints that a sync of a Service removed."),
	}
	m.Register(out.changes)
	m.Register(out.added)
	m.Register(out.removed)
	for name, gauge := range map[string]struct {
		help string
		of   func(Size) int
	}{
		"num_endpoint_slices": {"EndpointSlices that exist.", func(s Size) int { return s.Slices }},
		"desired_endpoint_slices": {"EndpointSlices that would be needed if each were full.", func(s Size) int {
			return s.Ideal
		}},
		"endpoints_desired": {"Endpoints that are to be in EndpointSlices.", func(s Size) int {
			return s.Endpoints
		}},
	} {
		m.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Subsystem: subsystem, Name: name, Help: gauge.help},
			func() float64 {
				out.mu.Lock()
				defer out.mu.Unlock()
				return float64(gauge.of(out.total))
			}))
	}
	return out
}

// PerSync is a histogram of how many there are in one look at a Service, with upstream's buckets.
func PerSync(subsystem, name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(
		prometheus.HistogramOpts{Subsystem: subsystem, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(2, 2, 15)})
}

// Created, Updated and Deleted count a slice that was written.
func (m *Metrics) Created() { m.changes.WithLabelValues("create").Inc() }
func (m *Metrics) Updated() { m.changes.WithLabelValues("update").Inc() }
func (m *Metrics) Deleted() { m.changes.WithLabelValues("delete").Inc() }

// Moved counts the endpoints that a look at a Service added to its slices, and took away.
func (m *Metrics) Moved(added, removed int) {
	m.added.Observe(float64(added))
	m.removed.Observe(float64(removed))
}

// Set notes how much there is of a Service; the zero Size forgets it.
func (m *Metrics) Set(service controller.Key, s Size) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.sizes[service]
	if was == s {
		return
	}
	m.total.Slices += s.Slices - was.Slices
	m.total.Ideal += s.Ideal - was.Ideal
	m.total.Endpoints += s.Endpoints - was.Endpoints
	if m.distribution[was.Distribution]--; m.distribution[was.Distribution] <= 0 {
		delete(m.distribution, was.Distribution)
	}
	if s == (Size{}) {
		delete(m.sizes, service)
		return
	}
	m.distribution[s.Distribution]++
	m.sizes[service] = s
}

// Distributions returns how many Services ask for each distribution of their traffic.
func (m *Metrics) Distributions() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]int{}
	for name, n := range m.distribution {
		if name != "" {
			out[name] = n
		}
	}
	return out
}

// Ideal is how many slices of at most most endpoints hold n.
func Ideal(n, most int) int { return max((n+most-1)/most, 1) }
