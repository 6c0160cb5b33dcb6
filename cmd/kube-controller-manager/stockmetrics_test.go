package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"bonsai/api/scheme"
	"bonsai/cmd/internal/metrictest"
	"bonsai/pkg/apiclient"
	"bonsai/pkg/controller"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics builds all controllers, and holds what they show against what Kubernetes' do, and
// docs/reference against it.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	o, fs := &options{}, pflag.NewFlagSet(component, pflag.ContinueOnError)
	o.addFlags(fs)
	err := fs.Parse([]string{"--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16",
		"--root-ca-file=" + file("ca", "x"), "--cloud-config=" + file("cloud", "loadBalancerCIDRs: [10.200.0.0/29]\n")})
	if err != nil {
		t.Fatal(err)
	}
	s := scheme.New()
	root, err := apiclient.New(&rest.Config{Host: "https://127.0.0.1:1"}, s) // nobody is asked
	if err != nil {
		t.Fatal(err)
	}
	registry := referencetest.NewRegistry()
	shown := newTelemetry(o, registry)
	m := &manager{o: o, log: slog.New(slog.DiscardHandler), root: root, scheme: s, shown: shown}
	informers, events := controller.NewInformers(root), record.NewBroadcaster()
	defer events.Shutdown()
	for _, e := range entries() {
		if _, err := m.build(t.Context(), e, informers, events); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
	}
	metrictest.Stock(t, component, slices.Concat(metrictest.Common(t), registry.Metrics()))
	referencetest.MetricsPage(t, component, "Metrics of kube-controller-manager",
		"At `/metrics`, beside [those of every component](common.md).", "./cmd/kube-controller-manager",
		metrictest.Own(t, registry.Metrics()))
}
