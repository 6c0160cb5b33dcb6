package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/election"
	"bonsai/pkg/controller"
)

// telemetry is all that the manager shows of itself at /metrics.
type telemetry struct {
	registry    daemon.Registry
	requests    *daemon.Requests
	election    *election.Metrics
	controllers *controller.Metrics
	running     running
}

// newTelemetry registers the metrics at r, which the manager serves.
func newTelemetry(o *options, r daemon.Registry) *telemetry {
	return &telemetry{registry: r, requests: daemon.NewRequests(r), election: election.NewMetrics(o.elect.Name, r),
		controllers: controller.NewMetrics(r), running: newRunning(r)}
}

// running is running_managed_controllers: 1 for each controller that works, 0 for one that has stopped. Upstream counts
// few of them, under their short names.
type running struct{ *prometheus.GaugeVec }

func newRunning(r prometheus.Registerer) running {
	out := running{prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "running_managed_controllers",
		Help:        "1 for each controller that this manager runs now, and 0 for one that it ran.",
		ConstLabels: prometheus.Labels{"manager": component}}, []string{"name"})}
	r.MustRegister(out)
	return out
}

// run is r.Run, counted under name.
func (m running) run(ctx context.Context, name string, r runner) error {
	at := m.WithLabelValues(name)
	at.Set(1)
	defer at.Set(0)
	return r.Run(ctx)
}
