package inferred

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/traces"
	"bonsai/pkg/story"
)

func zero() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

func at(seconds float64) metav1.Time {
	return metav1.NewTime(zero().Add(time.Duration(seconds * float64(time.Second))))
}

func is(kind corev1.PodConditionType, seconds float64) corev1.PodCondition {
	return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at(seconds)}
}

func event(reason, message, container string, first, last float64) corev1.Event {
	e := corev1.Event{Reason: reason, Message: message, FirstTimestamp: at(first), LastTimestamp: at(last)}
	if container != "" {
		e.InvolvedObject.FieldPath = "spec.containers{" + container + "}"
	}
	return e
}

func running(name string, seconds float64) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: at(seconds)}}}
}

// told is a trace as "name from-to detail".
func told(t *traces.Trace) string {
	var out []string
	for _, s := range t.Spans {
		text := fmt.Sprintf("%s %g-%g", s.Name, s.Start.Sub(zero()).Seconds(), s.End().Sub(zero()).Seconds())
		for _, name := range []string{container, image, "bytes", "owner", story.Ended} {
			if v := s.Attributes[name]; v != "" {
				text += " " + v
			}
		}
		if s.Error != "" {
			text += " !" + s.Error
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// TestPod: what follows from the parts of a pod and its events.
func TestPod(t *testing.T) {
	t.Parallel()
	scheduled := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, is(corev1.PodScheduled, 2))
	}
	const pull = `Successfully pulled image "nginx:1.27" in `
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		events []corev1.Event
		owner  *Owner
		want   string
		notes  int
	}{
		"nothing":   {func(*corev1.Pod) {}, nil, nil, "", 1},
		"scheduled": {scheduled, nil, nil, "scheduler 0-2", 1},
		"scheduled with fractions": {scheduled,
			[]corev1.Event{{Reason: "Scheduled", EventTime: metav1.NewMicroTime(at(2.25).Time)}}, nil,
			"scheduler 0-2.25", 0},
		"event of another second": {scheduled,
			[]corev1.Event{{Reason: "Scheduled", EventTime: metav1.NewMicroTime(at(4).Time)}}, nil, "scheduler 0-2", 0},
		"ready": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{is(corev1.PodReady, 9), is(corev1.ContainersReady, 9),
				is(corev1.PodReadyToStartContainers, 3), is(corev1.PodScheduled, 1)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 5)}
		}, []corev1.Event{event("Created", "", "web", 4, 4)}, nil,
			"pod 0-9, scheduler 0-1, kubelet.sandbox 1-3, kubelet.start 4-5 web, kubelet.ready 5-9", 0},
		"probe": {func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "web", ReadinessProbe: &corev1.Probe{}}}
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{}}
			p.Status.Conditions = []corev1.PodCondition{is(corev1.PodReady, 9), is(corev1.ContainersReady, 7)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 5)}
		}, nil, nil, "pod 0-9, kubelet.start 5-5 web, kubelet.probe 5-7, readiness gates 7-9", 1},
		"pulls": {func(*corev1.Pod) {}, []corev1.Event{
			event("Pulled", pull+"1.5s (2.5s including waiting). Image size: 72080558 bytes.", "web", 4, 4),
			event("Pulled", pull+"1.5s", "old", 5, 5),
			event("Pulled", `Container image "nginx" already present on machine`, "here", 5, 5),
			event("Pulled", pull+"1e400h", "wrong", 6, 6),
		}, nil, "kubelet.pull 1.5-4 web nginx:1.27 72080558, kubelet.pull 3.5-5 old nginx:1.27", 0},
		"failures": {func(*corev1.Pod) {}, []corev1.Event{event("BackOff", "Back-off\x1b[2J pulling", "web", 8, 60),
			event("FailedScheduling", "0/3 nodes are available", "", 1, 5), event("Unhealthy", "503", "web", 7, 7)}, nil,
			"scheduler.unschedulable 1-5 !0/3 nodes are available, kubelet.probe 7-7 web !503, kubelet.BackOff 8-60 web !Back-off[2J pulling", 0},
		"init container": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{running("sidecar", 2), {Name: "setup",
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(3),
					FinishedAt: at(6)}}}}
		}, nil, nil, "kubelet.start 2-2 sidecar, kubelet.init 3-6 setup", 1},
		"restarted": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 90)}
			p.Status.ContainerStatuses[0].RestartCount = 2
		}, nil, nil, "kubelet.start 90-90 web", 2},
		"ready long after": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{is(corev1.PodReady, 5000)}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{running("web", 5)}
		}, nil, nil, "pod 0-5000, kubelet.start 5-5 web, kubelet.ready 5-5000", 2},
		"ended": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodSucceeded
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "job", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{StartedAt: at(3), FinishedAt: at(60)}}}}
		}, nil, nil, "pod 0-60 succeeded, kubelet.start 3-3 job, kubelet.run 3-60 job", 2},
		"deleted": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(90)), new(int64(30))
		}, []corev1.Event{event("Killing", "", "web", 61, 61)}, nil, "kubelet.stop 60-61", 0},
		"deleted before it was ready": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(60)), new(int64(30))
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{StartedAt: at(3), FinishedAt: at(57)}}}}
		}, nil, nil, "pod 0-57 stopped, kubelet.start 3-3 web, kubelet.run 3-57 web, kubelet.stop 30-57", 2},
		"being deleted": {func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodRunning
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(at(60)), new(int64(30))
		}, []corev1.Event{event("Killing", "", "web", 31, 31)}, nil, "kubelet.stop 30-31", 1},
		"owner": {func(*corev1.Pod) {}, nil, &Owner{"ReplicaSet", "web-1", at(-2).Time},
			"owner -2-0 ReplicaSet web-1", 1},
		"old owner": {func(*corev1.Pod) {}, nil, &Owner{"ReplicaSet", "web-1", at(-200).Time}, "", 1},
		"injected": {func(p *corev1.Pod) {
			p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", Time: new(at(3))},
				{Manager: "injector", Time: new(at(1))}}
		}, nil, nil, "write 1-1", 1},
		"ready before it was created": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{is(corev1.PodReady, -5)}
		}, nil, nil, "pod 0-0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{}
			p.Name, p.CreationTimestamp = "web", at(0)
			test.change(p)
			trace, notes := Pod(p, test.events, test.owner)
			if got := told(trace); got != test.want || len(notes) != test.notes {
				t.Errorf("got  %s, notes %q\nwant %s", got, notes, test.want)
			}
		})
	}
}

// TestBounds: a pod that has thousands of events and writers has a bounded trace.
func TestBounds(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{}
	p.CreationTimestamp = at(0)
	var events []corev1.Event
	for i := range 5000 {
		events = append(events, event("BackOff", strings.Repeat("x", 10_000), "web", float64(i), float64(i)))
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: "m", Time: new(at(1))})
	}
	trace, _ := Pod(p, events, nil)
	if n := len(trace.Spans); n != maxEvents+maxWrites {
		t.Errorf("%d spans", n)
	}
	for _, s := range trace.Spans {
		if len(s.Error) > 2000 {
			t.Fatalf("an error of %d bytes", len(s.Error))
		}
	}
}

// TestTimes: the times of both kinds of events, and of neither.
func TestTimes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		e           corev1.Event
		first, last float64
	}{
		"counted": {event("", "", "", 1, 9), 1, 9},
		"series": {corev1.Event{EventTime: metav1.NewMicroTime(at(1.5).Time),
			Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(8).Time)}}, 1.5, 8},
		"created alone": {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(3)}}, 3, 3},
		"last before":   {event("", "", "", 4, 2), 4, 4},
	} {
		first, last := Times(&test.e)
		if !first.Equal(at(test.first).Time) || !last.Equal(at(test.last).Time) {
			t.Errorf("%s: %s to %s", name, first, last)
		}
	}
}
