package kubelet

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/podworker"
)

// gauges are the figures of a registry by name and label values, without those that are 0, and how many there are of
// them.
func gauges(t *testing.T, r prometheus.Gatherer) (got map[string]float64, all int) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := f.GetName()
			for _, l := range x.GetLabel() {
				name += fmt.Sprintf(" %s=%q", l.GetName(), l.GetValue())
			}
			if all++; x.GetGauge().GetValue() != 0 {
				got[name] = x.GetGauge().GetValue()
			}
		}
	}
	return got, all
}

// TestWorkingPods: upstream's labels, and its fifteen combinations of them, always all.
func TestWorkingPods(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(newWorkingPods(func() map[podworker.Kind]int {
		return map[podworker.Kind]int{{}: 5, {State: podworker.Terminating, Static: true}: 2,
			{State: podworker.Terminated}: 1, {State: podworker.Finished}: 3,
			{State: podworker.Terminating, Removed: true}:                            4,
			{State: podworker.Terminating, Removed: true, Found: true}:               6,
			{State: podworker.Terminating, Removed: true, Found: true, Static: true}: 1}
	}))
	got, all := gauges(t, r)
	want := map[string]float64{}
	for labels, n := range map[[3]string]float64{{"desired", "sync", ""}: 5, {"desired", "terminating", "true"}: 2,
		{"desired", "terminated", ""}: 4, {"orphan", "terminating", ""}: 4,
		{"runtime_only", "terminating", "unknown"}: 7} {
		want[fmt.Sprintf("kubelet_working_pods config=%q lifecycle=%q static=%q", labels[0], labels[1], labels[2])] = n
	}
	if !maps.Equal(got, want) || all != 15 {
		t.Errorf("%v of %d, want %v", got, all, want)
	}
}

// TestRecordsAreCounted: a pull that is under way, and an image that was pulled.
func TestRecordsAreCounted(t *testing.T) {
	t.Parallel()
	records, err := images.OpenRecords(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a:1", "b:1", "c:1"} {
		if err := records.Pulling(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := records.Pulled("a:1", "sha256:a", nil); err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	countRecords(r, records)
	want := map[string]float64{"kubelet_imagemanager_ondisk_pullintents": 2,
		"kubelet_imagemanager_ondisk_pulledrecords": 1}
	if got, _ := gauges(t, r); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
