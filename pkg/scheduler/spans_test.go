package scheduler

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/trace"
	"bonsai/pkg/trace/tracetest"
)

// TestSpans: a try is recorded as the wait, the decision and the binding, and each plug-in that took long is a part of
// what called it.
func TestSpans(t *testing.T) {
	t.Parallel()
	tracer, spans := tracetest.New("kube-scheduler")
	now := time.Unix(1000, 0)
	s := &Scheduler{Config: Config{Tracer: tracer, Now: func() time.Time { return now }}}
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.UID = "ns", "web", "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
	queued := &framework.QueuedPod{PodInfo: model.NewPodInfo(pod), Added: now.Add(-time.Second), Attempts: 2}
	state := framework.NewCycleState()
	s.begin(state, queued, now)
	lap := func(point, plugin string, took time.Duration) {
		begun := state.Laps.Begin()
		now = now.Add(took)
		state.Laps.End(point, plugin, begun)
	}
	lap("PreFilter", "Quick", longPlugin)
	lap("PreFilter", "Slow", longPlugin+1)
	s.didDecide(state, queued, "n1", time.Unix(1000, 0), now, nil)
	lap("PreBind", "VolumeBinding", time.Minute)
	b := &binding{s: s, state: state, pod: queued, node: "n1"}
	b.did(now, now, nil)
	fit := framework.NewCycleState()
	s.begin(fit, queued, now)
	s.didDecide(fit, queued, "", now, now, &framework.FitError{Pod: queued.PodInfo,
		Diagnosis: &framework.Diagnosis{Plugins: map[string]bool{"NodeResourcesFit": true, "NodeAffinity": true}}})
	broken := framework.NewCycleState()
	s.begin(broken, queued, now)
	s.didDecide(broken, queued, "", now, now, errors.New("secret"))
	if got, want := spans.Names(), []string{"scheduler.queue", "scheduler.plugin", "scheduler.decide",
		"scheduler.plugin", "scheduler.bind", "scheduler.queue", "scheduler.decide", "scheduler.queue",
		"scheduler.decide"}; !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
	all := spans.All()
	if all[0].EndTime().Sub(all[0].StartTime()) != time.Second ||
		tracetest.Attribute(all[0], "bonsai.scheduler.attempts") != "2" {
		t.Errorf("queue: %v to %v, %v", all[0].StartTime(), all[0].EndTime(), all[0].Attributes())
	}
	if all[1].Parent().SpanID() != all[2].SpanContext().SpanID() ||
		tracetest.Attribute(all[1], "bonsai.scheduler.plugin") != "Slow" {
		t.Errorf("the slow plug-in: %v", all[1].Attributes())
	}
	if all[3].Parent().SpanID() != all[4].SpanContext().SpanID() ||
		tracetest.Attribute(all[4], "k8s.node.name") != "n1" {
		t.Errorf("the binding: %v", all[4].Attributes())
	}
	if all[6].Status().Description != "no node fits" ||
		tracetest.Attribute(all[6], "bonsai.scheduler.rejecting_plugins") != "NodeAffinity,NodeResourcesFit" {
		t.Errorf("no node: %v, %v", all[6].Status(), all[6].Attributes())
	}
	if all[8].Status().Description != "scheduling failed" {
		t.Errorf("a failure: %v", all[8].Status())
	}
}

// TestNoSpans: what is not recorded costs no allocation.
func TestNoSpans(t *testing.T) {
	s := &Scheduler{Config: Config{Now: func() time.Time { panic("a clock is read") }}}
	pod := &corev1.Pod{}
	pod.UID = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"
	queued, state := &framework.QueuedPod{PodInfo: model.NewPodInfo(pod)}, framework.NewCycleState()
	b := &binding{s: s, state: state, pod: queued}
	for _, tracer := range []*trace.Tracer{nil, trace.New(trace.Config{Outlet: &tracetest.Spans{}})} {
		s.Tracer = tracer
		if n := testing.AllocsPerRun(100, func() {
			s.begin(state, queued, time.Time{})
			begun := state.Laps.Begin()
			state.Laps.End("Filter", "x", begun)
			s.didDecide(state, queued, "", time.Time{}, time.Time{}, nil)
			b.did(time.Time{}, time.Time{}, nil)
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
