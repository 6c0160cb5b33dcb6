package metrictest

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestDescribed: what a registry can show is known with all its labels before anything was observed.
func TestDescribed(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	r.MustRegister(
		prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "a_total", Help: `Some "help", of {a}.`,
				ConstLabels: prometheus.Labels{"m": "1,x=\"2\""}}, []string{"z", "b"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "plain"}),
	)
	if got, want := described([]prometheus.Collector{r}),
		map[string]string{"a_total": "b,m,z", "plain": ""}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAbsent reads the rows of a component below the heading, and no others.
func TestAbsent(t *testing.T) {
	t.Parallel()
	page := "| `kubelet` | `flag` | why |\n\n## Metrics\n\n| of | not there | why |\n|---|---|---|\n| `kubelet`, `kube-proxy` | `a_total`, `b` | no `c` |\n| `kube-scheduler` | `d` | why |\n"
	if got, want := absent(page, "kubelet"), []string{"a_total", "b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
