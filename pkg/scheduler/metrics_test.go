package scheduler

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/scheduler/queue"
)

func TestMetricsHaveUpstreamsNames(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	counts := queue.Counts{Active: 1}
	m := NewMetrics(r, func() queue.Counts { return counts })
	m.attempt("scheduled", "default-scheduler", time.Millisecond)
	m.attempt("scheduled", "default-scheduler", time.Second)
	m.attempt("unschedulable", "default-scheduler", time.Second)
	counts = queue.Counts{Active: 2, Backoff: 3, Unschedulable: 4, Gated: 5}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			var labels []string
			for _, l := range x.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[f.GetName()+" "+strings.Join(labels, " ")] = x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(x.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"scheduler_schedule_attempts_total default-scheduler scheduled":             2,
		"scheduler_schedule_attempts_total default-scheduler unschedulable":         1,
		"scheduler_scheduling_attempt_duration_seconds default-scheduler scheduled": 2,
		"scheduler_pending_pods active":                                             2,
		"scheduler_pending_pods backoff":                                            3,
		"scheduler_pending_pods unschedulable":                                      4,
		"scheduler_pending_pods gated":                                              5,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	var none *Metrics
	none.attempt("scheduled", "p", 0) // counts nothing, breaks nothing
}
