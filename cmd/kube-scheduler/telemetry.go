package main

import (
	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/election"
	"bonsai/pkg/scheduler"
)

// telemetry is all that the scheduler shows of itself: at /metrics, and what pods ask for at /metrics/resources.
type telemetry struct {
	registry, resources daemon.Registry
	requests            *daemon.Requests
	election            *election.Metrics
	scheduler           *scheduler.Metrics
}

// newTelemetry registers the metrics at r, which is served at /metrics; those of /metrics/resources come to resources.
func newTelemetry(o *options, r, resources daemon.Registry) *telemetry {
	return &telemetry{registry: r, resources: resources, requests: daemon.NewRequests(r),
		election: election.NewMetrics(o.elect.Name, r), scheduler: scheduler.NewMetrics(r)}
}

// read adds what is read off the scheduler and its world when it is asked for.
func (t *telemetry) read(s *scheduler.Scheduler, w *world) {
	t.registry.MustRegister(&scheduler.Collector{Queue: s.Queue, Cache: s.Cache})
	t.resources.MustRegister(&scheduler.PodResources{Each: w.pods.Each})
}
