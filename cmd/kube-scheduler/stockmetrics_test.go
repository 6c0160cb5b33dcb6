package main

import (
	"log/slog"
	"slices"
	"testing"

	"k8s.io/client-go/rest"

	"bonsai/cmd/internal/metrictest"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics holds what a scheduler shows against what Kubernetes' does, and docs/reference against it.
func TestReferenceMetrics(t *testing.T) {
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
	registry, resources := referencetest.NewRegistry(), referencetest.NewRegistry()
	shown, w := newTelemetry(o, registry, resources), newWorld(c, log)
	s, err := newScheduler(o, cfg, w, newParts(c, "h", shown.scheduler, log))
	if err != nil {
		t.Fatal(err)
	}
	shown.read(s, w)
	all := slices.Concat(registry.Metrics(), resources.Metrics())
	metrictest.Stock(t, component, slices.Concat(metrictest.Common(t), all))
	referencetest.MetricsPage(t, component, "Metrics of kube-scheduler",
		"At `/metrics`, beside [those of every component](common.md); `kube_pod_…` at `/metrics/resources`.",
		"./cmd/kube-scheduler", metrictest.Own(t, all))
}
