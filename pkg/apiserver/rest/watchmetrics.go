package rest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/request"
)

// watchMetrics counts what watches send, under upstream's names. A nil *watchMetrics counts nothing.
type watchMetrics struct {
	events         *prometheus.CounterVec
	sizes, initial *prometheus.HistogramVec
}

func newWatchMetrics(r prometheus.Registerer) *watchMetrics {
	if r == nil {
		return nil
	}
	labels := []string{"group", "version", "resource"}
	m := &watchMetrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "apiserver_watch_events_total",
			Help: "[BETA] Events that were sent to the clients of watches, by resource."}, labels),
		sizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "apiserver_watch_events_sizes",
			Help:    "[BETA] Bytes of the events that were sent to the clients of watches, by resource.",
			Buckets: prometheus.ExponentialBuckets(1024, 2, 8)}, labels),
		initial: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "apiserver_watch_list_duration_seconds",
			Help: "[BETA] Seconds to the end of the initial events of watches that list, by resource.",
			Buckets: []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
				90, 120, 180, 300}}, append(labels, "scope")),
	}
	r.MustRegister(m.events, m.sizes, m.initial)
	return m
}

// watchCount counts for one watch. A nil *watchCount counts nothing.
type watchCount struct {
	events prometheus.Counter
	sizes  prometheus.Observer
	// initial takes the seconds since begun when the initial events have been sent; nil: that is over, or was not
	// asked for.
	initial prometheus.Observer
	begun   time.Time
}

// begin counts for a watch that begins now. list tells that it takes the place of a list.
func (m *watchMetrics) begin(info *request.Info, list bool) *watchCount {
	if m == nil {
		return nil
	}
	c := &watchCount{events: m.events.WithLabelValues(info.APIGroup, info.APIVersion, info.Resource),
		sizes: m.sizes.WithLabelValues(info.APIGroup, info.APIVersion, info.Resource), begun: time.Now()}
	if list {
		c.initial = m.initial.WithLabelValues(info.APIGroup, info.APIVersion, info.Resource, info.Scope())
	}
	return c
}

// sent counts an event of so many bytes.
func (c *watchCount) sent(bytes int) {
	if c != nil {
		c.events.Inc()
		c.sizes.Observe(float64(bytes))
	}
}

// listed counts the end of the initial events.
func (c *watchCount) listed() {
	if c != nil && c.initial != nil {
		c.initial.Observe(time.Since(c.begun).Seconds())
		c.initial = nil
	}
}
