package daemon_test

import (
	"testing"

	"bonsai/cmd/internal/metrictest"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics that components have in common as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	referencetest.MetricsPage(t, "common", "Metrics of every component", "At `/metrics` of each component. "+
		"`rest_client_…` have those that are clients of the API server: kube-controller-manager, kube-scheduler, the "+
		"kubelet and kube-proxy. `bonsai_trace_spans_total` have those that make [spans](../../guides/tracing.md). "+
		"`/metrics/slis` has [those of health checks](health.md).", "./cmd/internal/daemon", metrictest.Common(t))
}
