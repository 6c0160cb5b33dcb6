package daemon

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"bonsai/api/kubeversion"
)

// What a component asks of its API server, and what came of it, is in its metrics; so is which build it is.
func TestCountRequests(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "short and stout")
	}))
	defer srv.Close()
	config, err := Connect(&rest.Config{Host: srv.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	r := NewMetrics()
	NewRequests(r).Count(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{srv.URL, srv.URL + "?watch=true", "https://127.0.0.1:1"} { // nobody listens at port 1
		if resp, err := client.Get(url); err == nil {
			resp.Body.Close()
		}
	}
	host := strings.TrimPrefix(srv.URL, "https://")
	want := map[string]float64{"rest_client_requests_total 418 " + host + " GET": 2,
		"rest_client_requests_total <error> 127.0.0.1:1 GET":    1,
		"rest_client_request_duration_seconds " + host + " GET": 2,
		"rest_client_request_size_bytes " + host + " GET":       2,
		"rest_client_response_size_bytes " + host + " GET":      1} // what is watched has no size
	got := counts(t, r)
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	found := false
	for name := range got {
		found = found || strings.HasPrefix(name, "kubernetes_build_info ") &&
			strings.Contains(name, " "+kubeversion.Git+" ")
	}
	if !found {
		t.Errorf("no build in %v", got)
	}
}

// counts are figures by name and label values; of a histogram, how much was observed.
func counts(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := f.GetName()
			for _, l := range x.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(x.GetHistogram().GetSampleCount())
		}
	}
	return got
}
