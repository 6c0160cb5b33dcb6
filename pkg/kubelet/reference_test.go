package kubelet

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"bonsai/pkg/delegated"
	"bonsai/pkg/kubelet/certificate"
	"bonsai/pkg/kubelet/images/credentialprovider"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/server"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics of a whole kubelet as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r, probes := referencetest.NewRegistry(), referencetest.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	newBare(t, r)
	for _, m := range []*certificate.Metrics{certificate.NewClientMetrics(r), certificate.NewServingMetrics(r)} {
		_, err := certificate.NewManager(certificate.Config{Store: certificate.Store{Dir: t.TempDir(), Prefix: "x"},
			Template: func() *x509.CertificateRequest { return nil },
			Requests: func() (certificate.Requests, error) { return nil, nil },
			Metrics:  m, Now: time.Now, Random: rand.Float64, Log: log})
		if err != nil {
			t.Fatal(err)
		}
	}
	credentialprovider.NewMetrics(r)
	prober.NewMetrics(probes)
	type podsOf = server.Pods // a field of another name than its method
	var pods struct{ podsOf }
	_, err := server.New(server.Config{ // nothing of it is called
		Authenticator: struct{ delegated.Authenticator }{}, Authorizer: struct{ delegated.Authorizer }{},
		Pods: pods, Runtime: struct{ server.Runtime }{}, Logs: struct{ server.Logs }{},
		Certificate: func() *tls.Certificate { return nil }, Registry: r, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	referencetest.MetricsPage(t, "kubelet", "Metrics of the kubelet", "At `/metrics`, beside "+
		"[those of every component](common.md); `prober_…` at `/metrics/probes`. "+
		"[Those of machines, pods and containers](kubelet-cadvisor.md) are at `/metrics/cadvisor`, "+
		"[few of them](kubelet-resource.md) at `/metrics/resource`.",
		"./pkg/kubelet", slices.Concat(r.Metrics(), probes.Metrics()))
}
