package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/election"
	"bonsai/pkg/scheduler"
)

// telemetry is all that the scheduler shows of itself: at /metrics, and what pods ask for at /metrics/resources.
type telemetry struct {
	registry, resources *prometheus.Registry
	requests            *daemon.Requests
	election            *election.Metrics
	scheduler           *scheduler.Metrics
}

func newTelemetry(o *options) *telemetry {
	r := daemon.NewMetrics()
	return &telemetry{registry: r, resources: prometheus.NewRegistry(), requests: daemon.NewRequests(r),
		election: election.NewMetrics(o.elect.Name, r), scheduler: scheduler.NewMetrics(r)}
}

// read adds what is read off the scheduler and its world when it is asked for.
func (t *telemetry) read(s *scheduler.Scheduler, w *world) {
	t.registry.MustRegister(&scheduler.Collector{Queue: s.Queue, Cache: s.Cache})
	t.resources.MustRegister(&scheduler.PodResources{Each: w.pods.Each})
}
