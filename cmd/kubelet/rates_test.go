package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/cmd/internal/daemon"
)

// TestBounded: requests wait for the bound, except those that keep the node alive.
func TestBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	s, err := parse(t, "", "--kube-api-qps=1", "--kube-api-burst=2")
	if err != nil {
		t.Fatal(err)
	}
	connection := &rest.Config{Transport: http.DefaultTransport}
	requests := daemon.NewRequests(prometheus.NewRegistry())
	client := http.Client{Transport: bounded(s.file, connection, requests).Transport}
	ask := func(path string) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		return answer.Body.Close()
	}
	for range 2 {
		if err := ask("/api/v1/pods"); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if err := ask("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"); err != nil {
			t.Fatal(err)
		}
	}
	if unbounded := bounded(&kubeletconfig.KubeletConfiguration{}, connection, requests); unbounded != connection {
		t.Error("without a bound there is one")
	}
	waits := limiter(s.file.KubeAPIQPS, 1)
	if !waits.TryAccept() || waits.TryAccept() {
		t.Error("the limiter does not hold to its burst")
	}
}

// TestRateSettings: numbers that cannot be are refused by their fields and flags.
func TestRateSettings(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{
		"--event-burst=-1":          "invalid configuration: eventBurst (--event-burst) -1 must not be a negative number",
		"--registry-qps=-1":         "invalid configuration: registryPullQPS (--registry-qps) -1 must not be a negative number",
		"--max-open-files=-1":       "invalid configuration: maxOpenFiles (--max-open-files) -1 must not be a negative number",
		"--hairpin-mode=sometimes":  `invalid configuration: option "sometimes" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`,
		"--exit-on-lock-contention": "cannot exit on lock file contention: no lock file specified (--lock-file)",
	} {
		if _, err := parse(t, "", flag); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}
