package kubelet

import (
	"crypto/tls"
	"log/slog"
	"slices"
	"testing"

	"bonsai/pkg/delegated"
	"bonsai/pkg/kubelet/certificate"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/server"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics of a whole kubelet as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r, probes := referencetest.NewRegistry(), referencetest.NewRegistry()
	newBare(t, r)
	certificate.NewClientMetrics(r)
	certificate.NewServingMetrics(r)
	prober.NewMetrics(probes)
	type podsOf = server.Pods // a field of another name than its method
	var pods struct{ podsOf }
	_, err := server.New(server.Config{ // nothing of it is called
		Authenticator: struct{ delegated.Authenticator }{}, Authorizer: struct{ delegated.Authorizer }{},
		Pods: pods, Runtime: struct{ server.Runtime }{}, Logs: struct{ server.Logs }{},
		Certificate: func() *tls.Certificate { return nil }, Registry: r, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	referencetest.MetricsPage(t, "kubelet", "Metrics of the kubelet", "At `/metrics`, beside "+
		"[those of every component](common.md); `prober_…` at `/metrics/probes`. "+
		"[Those of machines, pods and containers](kubelet-cadvisor.md) are at `/metrics/cadvisor`.",
		"./pkg/kubelet", slices.Concat(r.Metrics(), probes.Metrics()))
}
