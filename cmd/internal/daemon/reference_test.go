package daemon

import (
	"testing"

	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics of every component as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	registerCommon(r)
	referencetest.MetricsPage(t, "common", "Metrics of every component", "At `/metrics` of each component.",
		"./cmd/internal/daemon", r.Metrics())
}
