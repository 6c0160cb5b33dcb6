package main

import (
	"log/slog"
	"testing"

	"k8s.io/client-go/rest"

	"bonsai/cmd/internal/metrictest"
)

// TestStockMetrics holds what a scheduler shows against what Kubernetes' does.
func TestStockMetrics(t *testing.T) {
	t.Parallel()
	o, cfg, err := parse(t, "", "--kubeconfig=x")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newClient(&rest.Config{Host: "http://127.0.0.1:1"}) // nobody is asked
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	shown, w := newTelemetry(o), newWorld(c, log)
	s, err := newScheduler(o, cfg, w, newParts(c, "h", shown.scheduler, log))
	if err != nil {
		t.Fatal(err)
	}
	shown.read(s, w)
	metrictest.Stock(t, component, shown.registry, shown.resources)
}
