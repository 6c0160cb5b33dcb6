package server

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestRequestsAreCounted: upstream's names and labels; paths and methods that clients make up share one series.
func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	inflight := 0.0
	var figures func() map[string]float64
	h := newRequests(r).counted(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		for name, v := range figures() {
			if strings.HasPrefix(name, "kubelet_http_inflight_requests") {
				inflight += v
			}
		}
	}))
	figures = func() map[string]float64 {
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, x := range f.GetMetric() {
				name := []string{f.GetName()}
				for _, l := range x.GetLabel() {
					name = append(name, l.GetValue())
				}
				out[strings.Join(name, " ")] = x.GetCounter().GetValue() + x.GetGauge().GetValue() +
					float64(x.GetHistogram().GetSampleCount())
			}
		}
		return out
	}
	for _, q := range []string{"GET /metrics/cadvisor", "GET /metrics/made-up", "GET /pods/", "POST /exec/ns/p/c",
		"GET /x1", "GET /x2", "ODD /x3"} {
		method, path, _ := strings.Cut(q, " ")
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	}
	want := map[string]float64{}
	for labels, n := range map[string]float64{"false GET metrics/cadvisor": 1, "false GET metrics": 1,
		"false GET pods": 1, "true POST exec": 1, "false GET other": 2, "false other other": 1} {
		want["kubelet_http_requests_total "+labels+" readwrite"] = n
		want["kubelet_http_requests_duration_seconds "+labels+" readwrite"] = n
		want["kubelet_http_inflight_requests "+labels+" readwrite"] = 0
	}
	if got := figures(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if inflight != 7 {
		t.Errorf("%v requests were in flight, want one at a time", inflight)
	}
}
