package scheduler_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler"
	"bonsai/pkg/scheduler/framework"
)

// samples are the values at r by name and labels' values: of histograms, their counts. Those that are 0 are left out.
func samples(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			labels := []string{strings.TrimPrefix(f.GetName(), "scheduler_")}
			for _, l := range x.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if v := x.GetCounter().GetValue() + x.GetGauge().GetValue() +
				float64(x.GetHistogram().GetSampleCount()); v != 0 {
				got[strings.Join(labels, " ")] = v
			}
		}
	}
	return got
}

// TestMetricsOfAPodsWay: what a scheduler counts of a pod that is bound after a refused try, one that fits nowhere, and
// one that is gated.
func TestMetricsOfAPodsWay(t *testing.T) {
	inBubble(t, func(t *testing.T, f *server) {
		f.refuse = []error{errors.New("not now")}
		f.s.NodeChanged(nil, node("n", "1"))
		f.s.PodChanged(nil, pending("fits", "1"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		f.s.PodChanged(nil, pending("big", "2")) // after the failed binding, whose room would have it tried again
		gated := pending("gated", "1")
		gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		f.s.PodChanged(nil, gated)
		synctest.Wait()
		if f.where("fits") != "n" {
			t.Fatalf("bound %v", f.bound)
		}
		want := map[string]float64{
			"schedule_attempts_total s scheduled": 1, "scheduling_attempt_duration_seconds s scheduled": 1,
			"schedule_attempts_total s error": 1, "scheduling_attempt_duration_seconds s error": 1,
			"schedule_attempts_total s unschedulable": 1, "scheduling_attempt_duration_seconds s unschedulable": 1,
			"scheduling_algorithm_duration_seconds":                                  3,
			"framework_extension_point_duration_seconds Reserve s Success":           2,
			"framework_extension_point_duration_seconds Permit s Success":            2,
			"framework_extension_point_duration_seconds PreBind s Success":           2,
			"framework_extension_point_duration_seconds Bind s Error":                1,
			"framework_extension_point_duration_seconds Bind s Success":              1,
			"framework_extension_point_duration_seconds Unreserve s Success":         1,
			"framework_extension_point_duration_seconds PostBind s Success":          1,
			"queue_incoming_pods_total UnscheduledPodAdd active":                     2,
			"queue_incoming_pods_total UnscheduledPodAdd gated":                      1,
			"queue_incoming_pods_total ScheduleAttemptFailure backoff":               1,
			"queue_incoming_pods_total ScheduleAttemptFailure unschedulable":         1,
			"queue_incoming_pods_total BackoffComplete active":                       1,
			"queue_incoming_entities_total UnscheduledPodAdd active pod":             2,
			"queue_incoming_entities_total UnscheduledPodAdd gated pod":              1,
			"queue_incoming_entities_total ScheduleAttemptFailure backoff pod":       1,
			"queue_incoming_entities_total ScheduleAttemptFailure unschedulable pod": 1,
			"queue_incoming_entities_total BackoffComplete active pod":               1,
			"queued_entities unschedulable pod":                                      1,
			"queued_entities gated pod":                                              1,
			"pod_scheduling_attempts":                                                1,
			"pod_scheduling_sli_duration_seconds 2":                                  1,
			"pending_pods unschedulable":                                             1,
			"pending_pods gated":                                                     1,
			"unschedulable_pods NodeResourcesFit s":                                  1,
			"unschedulable_pods SchedulingGates s":                                   1,
			"cache_size nodes":                                                       1,
			"cache_size pods":                                                        1,
		}
		if got := samples(t, f.metrics); !maps.Equal(got, want) {
			for _, k := range slices.Sorted(maps.Keys(got)) {
				if got[k] != want[k] {
					t.Errorf("%s is %v, want %v", k, got[k], want[k])
				}
			}
			for k, v := range want {
				if got[k] == 0 {
					t.Errorf("%s is missing, want %v", k, v)
				}
			}
		}
	})
}

// TestNoMetrics: a nil *Metrics counts nothing and breaks nothing.
func TestNoMetrics(t *testing.T) {
	t.Parallel()
	var none *scheduler.Metrics
	none.Preempting()
	none.Victims(1)
	none.Incoming("active", "UnscheduledPodAdd")
}

// TestPreemptionIsCounted: searches for victims and the victims.
func TestPreemptionIsCounted(t *testing.T) {
	t.Parallel()
	r := prometheus.NewPedanticRegistry()
	m := scheduler.NewMetrics(r)
	m.Preempting()
	m.Preempting()
	m.Victims(3)
	got := samples(t, r)
	if got["preemption_attempts_total"] != 2 || got["preemption_victims"] != 1 {
		t.Errorf("%v", got)
	}
}

// TestCodes: metrics show the codes' names.
func TestCodes(t *testing.T) {
	t.Parallel()
	for code, want := range map[framework.Code]string{framework.Success: "Success", framework.Skip: "Skip",
		framework.UnschedulableAndUnresolvable: "UnschedulableAndUnresolvable"} {
		if got := code.String(); got != want {
			t.Errorf("code %d is %q, want %q", int(code), got, want)
		}
	}
}
