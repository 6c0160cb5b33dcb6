package backends

import (
	"maps"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/controller"
)

// TestMetrics: the sums are those of all Services, also after one has changed or is gone.
func TestMetrics(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	m := NewMetrics(controller.NewMetrics(r), "x")
	a, b := controller.Key{Name: "a"}, controller.Key{Name: "b"}
	m.Set(a, Size{Slices: 2, Ideal: 1, Endpoints: 7, Distribution: "PreferSameZone"})
	m.Set(b, Size{Slices: 1, Ideal: 1, Endpoints: 3})
	m.Set(b, Size{Slices: 1, Ideal: 1, Endpoints: 4})
	want := func(slices, ideal, endpoints float64, distributions map[string]int) {
		t.Helper()
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[f.GetName()] = m.GetGauge().GetValue()
			}
		}
		if got["x_num_endpoint_slices"] != slices || got["x_desired_endpoint_slices"] != ideal ||
			got["x_endpoints_desired"] != endpoints {
			t.Errorf("%v, want %v slices, %v ideal, %v endpoints", got, slices, ideal, endpoints)
		}
		if got := m.Distributions(); !maps.Equal(got, distributions) {
			t.Errorf("distributions %v, want %v", got, distributions)
		}
	}
	want(3, 2, 11, map[string]int{"PreferSameZone": 1})
	m.Set(a, Size{})
	want(1, 1, 4, map[string]int{})
	m.Set(b, Size{})
	m.Set(b, Size{}) // again, as every look at a Service without slices does
	want(0, 0, 0, map[string]int{})
}

// TestIdeal: a Service without endpoints has one slice, too.
func TestIdeal(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 1, 1: 1, 100: 1, 101: 2, 250: 3} {
		if got := Ideal(n, 100); got != want {
			t.Errorf("%d endpoints: %d slices, want %d", n, got, want)
		}
	}
}
