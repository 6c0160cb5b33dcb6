package daemon

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"

	"bonsai/api/kubeversion"
)

// TestMetricFlags: a malformed value is refused in the words of v1.36.3.
func TestMetricFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	for file, text := range map[string]string{good: "a,b: c\n", bad: "foo\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{
		"--show-hidden-metrics-for-version=" + kubeversion.Previous: "", "--disabled-metrics=a,b:c": "", "--allow-metric-labels=a,b=": "",
		"--allow-metric-labels-manifest=" + good: "",
		"--allow-metric-labels-manifest=" + bad:  "metrics.allowListMappingManifest: Invalid value: ",
		"--allow-metric-labels-manifest=/none":   `metrics.allowListMappingManifest: Invalid value: "/none": failed to read allow list manifest: open /none: no such file or directory`,
		"--show-hidden-metrics-for-version=1.30": `metrics.showHiddenMetricsForVersion: Invalid value: "1.30": must be omitted or have the value '` + kubeversion.Previous +
			`'; only the previous minor version is allowed`,
		"--disabled-metrics=a,b-c":      `metrics.disabledMetrics: Invalid value: ["a","b-c"]: must be fully qualified metric names matching "^[a-zA-Z_:][a-zA-Z0-9_:]*$", got "b-c"`,
		"--allow-metric-labels=foo=bar": "metrics.allowListMapping: Invalid value: {\"foo\":\"bar\"}: must have keys with format `metricName,labelName` where metricName matches \"[a-zA-Z_:][a-zA-Z0-9_:]*\" and labelName matches \"[a-zA-Z_][a-zA-Z0-9_]*\"",
		"--allow-metric-labels=a-b,c=d": "metrics.allowListMapping: ",
	} {
		var m MetricFlags
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		m.AddFlags(fs)
		if err := fs.Parse([]string{arg}); err != nil {
			t.Errorf("%s: %v", arg, err)
		}
		if err := m.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

// TestShownMetrics: what is disabled is left out, values that are not allowed become one, and what is counted is as
// before.
func TestShownMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests", Help: "x"}, []string{"code", "verb"})
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took", Help: "x", Buckets: []float64{1, 2}},
		[]string{"verb"})
	noise := prometheus.NewGauge(prometheus.GaugeOpts{Name: "noise", Help: "x"})
	r.MustRegister(requests, took, noise)
	for i, verb := range []string{"GET", "LIST", "PUT", "PUT"} {
		requests.WithLabelValues("200", verb).Inc()
		took.WithLabelValues(verb).Observe(float64(i))
	}
	manifest := filepath.Join(t.TempDir(), "manifest")
	if err := os.WriteFile(manifest, []byte("took,verb: nothing\nrequests,verb: PUT\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := MetricFlags{Disabled: []string{"noise", "absent"}, Labels: map[string]string{"requests,verb": "GET,POST"},
		Manifest: manifest}
	shown, err := m.Show(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `# HELP requests x
# TYPE requests counter
requests{code="200",verb="GET"} 1
requests{code="200",verb="unexpected"} 3
# HELP took x
# TYPE took histogram
took_bucket{verb="unexpected",le="1"} 2
took_bucket{verb="unexpected",le="2"} 3
took_bucket{verb="unexpected",le="+Inf"} 4
took_sum{verb="unexpected"} 6
took_count{verb="unexpected"} 4
`
	text := func(from prometheus.Gatherer) string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(from, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	for range 2 { // nothing is added up in the registry itself
		if got := text(shown); got != want {
			t.Errorf("shown:\n%s", got)
		}
	}
	all := text(r)
	if !strings.Contains(all, "noise 0") || !strings.Contains(all, `requests{code="200",verb="PUT"} 2`) {
		t.Errorf("counted:\n%s", all)
	}
	if same, err := new(MetricFlags).Show(r); err != nil || same != Registry(r) {
		t.Errorf("without flags: %v, %v", same, err)
	}
}
