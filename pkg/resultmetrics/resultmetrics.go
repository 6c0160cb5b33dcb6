// Package resultmetrics counts by result what a server did, and how long it took: a counter and a histogram with one
// label, as Kubernetes has them for authentication, authorization and caches.
package resultmetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Result counts what ended in one way, and how long it took.
type Result struct {
	total    prometheus.Counter
	duration prometheus.Observer
}

// Observe counts one.
func (r Result) Observe(took time.Duration) {
	r.total.Inc()
	r.duration.Observe(took.Seconds())
}

// New registers a counter and a histogram of seconds at r, and returns the Result for a value of their label.
func New(r prometheus.Registerer, label string, total prometheus.CounterOpts,
	duration prometheus.HistogramOpts) func(value string) Result {
	totals := prometheus.NewCounterVec(total, []string{label})
	durations := prometheus.NewHistogramVec(duration, []string{label})
	r.MustRegister(totals, durations)
	return func(value string) Result {
		return Result{totals.WithLabelValues(value), durations.WithLabelValues(value)}
	}
}
