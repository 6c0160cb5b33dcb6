package inferred

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/traces"
)

// recordedSpan is a span of the store: its times have fractions of a second.
func recordedSpan(name, of, failure string, from, to float64) traces.Span {
	s := traces.Span{ID: "a", Name: name, Component: kubelet, Start: at(from).Time,
		Duration: time.Duration((to - from) * float64(time.Second)), Error: failure}
	if of != "" {
		s.Attributes = map[string]string{container: of}
	}
	return s
}

// TestComplete: what a pod's object and events add to a recorded trace.
func TestComplete(t *testing.T) {
	t.Parallel()
	const oci = "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create " +
		`failed: unable to start container process: exec: "/nope": no such file or directory`
	const failure = `kubelet.start 2.25-2.5 web !RunContainerError: exec: "/nope": no such file or directory`
	fails := recordedSpan("kubelet.start", "web", "RunContainerError", 2.25, 2.5)
	start := recordedSpan("kubelet.start", "web", "", 2.25, 2.5)
	probe := &corev1.Probe{}
	for name, test := range map[string]struct {
		spans  []traces.Span
		change func(*corev1.Pod)
		events []corev1.Event
		want   string
	}{
		"the event of a failure": {[]traces.Span{fails}, func(*corev1.Pod) {}, []corev1.Event{
			event("Failed", "Error: another time", "web", 20, 30), event("Failed", "Error: another container", "side", 2, 2),
			event("Failed", "Error: RunContainerError", "web", 2, 2), event("Failed", "Error: "+oci, "web", 2, 9)},
			failure},
		"the status of a failure": {[]traces.Span{fails}, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: oci}}}}
		}, nil, failure},
		"the last end of one that cannot start": {[]traces.Span{fails}, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("web", "CrashLoopBackOff")}
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = terminated(128, "StartError", oci, -1e9, 2)
		}, nil, failure},
		"no message": {[]traces.Span{fails}, func(*corev1.Pod) {}, nil,
			"kubelet.start 2.25-2.5 web !RunContainerError"},
		"volumes": {[]traces.Span{recordedSpan("kubelet.volumes", "", "FailedMount", 1, 2)}, func(*corev1.Pod) {},
			[]corev1.Event{event("FailedMount", `configmap "x" not found`, "", 2, 2)},
			`kubelet.volumes 1-2 !FailedMount: configmap "x" not found`},
		"runs": {[]traces.Span{start}, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{waiting("web", "CrashLoopBackOff")}
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = terminated(137, "OOMKilled", "", 2, 7)
		}, nil, "kubelet.start 2.25-2.5 web, kubelet.run 2.5-7 web !OOMKilled, exit code 137"},
		"two runs": {nil, func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{
				Terminated: terminated(1, "Error", "bye\n", 9, 11)}}}
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = terminated(0, "Completed", "", 2, 7)
		}, nil, "kubelet.run 2-7 web, kubelet.run 9-11 web !exit code 1: bye"},
		"a run of a job": {nil, func(p *corev1.Pod) {
			p.Spec.RestartPolicy = corev1.RestartPolicyNever
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 5)}
		}, nil, "kubelet.run 5-90 web"},
		"init containers": {nil, func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: corev1.ContainerState{
				Terminated: terminated(0, "Completed", "", 2, 7)}}}
		}, nil, "kubelet.init 2-7 setup"},
		"a readiness probe that never passed": {[]traces.Span{start}, func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "web", ReadinessProbe: probe}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 2)}
		}, []corev1.Event{counting(event("Unhealthy", "Readiness probe failed: 503", "web", 7, 87), 9)},
			"kubelet.start 2.25-2.5 web, kubelet.probe 2.5-90 web !Readiness probe failed: 503 (9 times)"},
		"a readiness probe that passed once": {[]traces.Span{start, recordedSpan("kubelet.probe", "web", "", 2.5, 4)},
			func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 2)} },
			[]corev1.Event{event("Unhealthy", "Readiness probe failed: 503", "web", 70, 85)},
			"kubelet.start 2.25-2.5 web, kubelet.probe 2.5-4 web, kubelet.probe 70-85 web !Readiness probe failed: 503"},
		"a liveness probe": {nil,
			func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 2)} },
			[]corev1.Event{event("Unhealthy", "Liveness probe failed: 503", "web", 70, 85)},
			"kubelet.probe 70-85 web !Liveness probe failed: 503"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: at(0)}}
			p.Spec.NodeName = "n1"
			test.change(p)
			before := &traces.Trace{Spans: test.spans}
			was := told(before)
			got := Complete(before, p, test.events, at(90).Time)
			if told(got) != test.want {
				t.Errorf("got  %s\nwant %s", told(got), test.want)
			}
			if told(before) != was {
				t.Errorf("the recorded trace is changed: %s", told(before))
			}
			for _, s := range got.Spans[len(test.spans):] {
				if s.Instance != "n1" || s.ID != "" {
					t.Errorf("%+v", s)
				}
			}
		})
	}
}

func counting(e corev1.Event, n int32) corev1.Event {
	e.Count = n
	return e
}

// TestNotCreated: since when pods could not be made, and the last words about it.
func TestNotCreated(t *testing.T) {
	t.Parallel()
	events := []corev1.Event{event("SuccessfulCreate", "Created pod", "", 1, 1),
		counting(event("FailedCreate", "no quota", "", 9, 20), 7), event("FailedCreate", "no account", "", 3, 8),
		event("FailedCreate", "later", "", 50, 60)}
	if since, why := NotCreated(events, at(40).Time); !since.Equal(at(3).Time) || why != "no quota (7 times)" {
		t.Errorf("since %s: %s", since, why)
	}
	if since, why := NotCreated(events[:1], at(40).Time); !since.IsZero() || why != "" {
		t.Errorf("nothing failed, but since %s: %s", since, why)
	}
}

// TestCompleteBounds: endless messages and events are bounded.
func TestCompleteBounds(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{}
	var events []corev1.Event
	for i := range 5000 {
		events = append(events, event("Unhealthy", strings.Repeat("x", 10_000), "web", float64(i), float64(i)))
	}
	got := Complete(&traces.Trace{}, p, events, at(90).Time)
	if n := len(got.Spans); n != maxEvents {
		t.Errorf("%d spans", n)
	}
	if n := len(got.Spans[0].Error); n > 2000 {
		t.Errorf("an error of %d bytes", n)
	}
}
