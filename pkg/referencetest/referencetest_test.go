package referencetest

import (
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestMetrics: what a registry can show is known with its type, help and labels before anything was observed.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := NewRegistry()
	r.MustRegister(
		prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "a_total", Help: `Some "help", of {a}.`,
				ConstLabels: prometheus.Labels{"m": "1,x=\"2\""}}, []string{"z", "b"}),
		prometheus.NewGauge(prometheus.GaugeOpts{Name: "plain"}),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took_seconds"}, []string{"verb"}),
	)
	want := []Metric{{"a_total", `Some "help", of {a}.`, "counter", []string{"b", "m", "z"}},
		{"plain", "", "gauge", nil},
		{"took_seconds", "", "histogram", []string{"verb"}}}
	got := r.Metrics()
	for i := range got {
		if len(got[i].Labels) == 0 {
			got[i].Labels = nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestExposed: a page in the text format says names, help, types and labels.
func TestExposed(t *testing.T) {
	t.Parallel()
	page := "# HELP b_total Many.\n# TYPE b_total counter\nb_total{z=\"{1}, x=\\\"2\",c=\"\"} 1 1234\nb_total{c=\"\",z=\"\"} 2\n" +
		"# HELP a One.\n# TYPE a gauge\na 1\n"
	want := []Metric{{"a", "One.", "gauge", nil}, {"b_total", "Many.", "counter", []string{"c", "z"}}}
	if got := Exposed(page); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestFields: a struct is taken apart, also in a list; a whole one is not; defaults are shown as a file has them.
func TestFields(t *testing.T) {
	t.Parallel()
	type part struct {
		Size *int32 `json:"size,omitempty"`
	}
	type config struct {
		Name  string `json:"name"`
		Parts []part `json:"parts"`
		One   part   `json:"one"`
		Whole part   `json:"whole"`
		inner string
	}
	five := int32(5)
	want := []Field{{"name", "string", "n"}, {"parts[].size", "int", ""}, {"one.size", "int", "5"},
		{"whole", "part", ""}}
	if got := Fields(config{Name: "n", One: part{&five}, inner: "x"}, "json", "whole"); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestTable: no cell ends its row or column.
func TestTable(t *testing.T) {
	t.Parallel()
	if got, want := Table([]string{"a", "b"}, [][]string{{"x|y", "<z>\nw"}}),
		"| a | b |\n|---|---|\n| x\\|y | &lt;z> w |\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
