package inferred

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/story"
)

func waiting(name, reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func terminated(code int32, reason, message string, from, to float64) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message, StartedAt: at(from),
		FinishedAt: at(to)}
}

// TestNow: why a pod is not Ready, in a few words.
func TestNow(t *testing.T) {
	t.Parallel()
	asked := at(90).Time
	containers := func(all ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase, p.Status.ContainerStatuses = corev1.PodRunning, all }
	}
	crashed := waiting("web", "CrashLoopBackOff")
	crashed.LastTerminationState.Terminated = terminated(1, "Error", "", 3, 4)
	killed := waiting("web", "CrashLoopBackOff")
	killed.LastTerminationState.Terminated = terminated(137, "OOMKilled", "", 3, 4)
	sidecar := running("proxy", 1)
	sidecar.Started = new(true)
	ended, well := corev1.ContainerStatus{Name: "web"}, corev1.ContainerStatus{Name: "job"}
	ended.State.Terminated = terminated(2, "Error", "", 3, 4)
	well.State.Terminated = terminated(0, "Completed", "", 3, 4)
	initializing := func(all ...corev1.ContainerStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.InitContainerStatuses = all }
	}
	crashes := story.Now{Why: "CrashLoopBackOff (exit code 1)"}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   story.Now
	}{
		"ready": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{is(corev1.PodReady, 5)}
		}, story.Now{Ready: true}},
		"ready, without a time": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: "True"}}
		}, story.Now{Ready: true}},
		"was ready, and crashed": {func(p *corev1.Pod) {
			containers(crashed)(p) // from 3 to 4
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: "False",
				LastTransitionTime: at(4)}}
		}, story.Now{Why: "CrashLoopBackOff (exit code 1)", Lost: at(4).Time}},
		"was never ready, and crashed": {func(p *corev1.Pod) {
			containers(crashed)(p)
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: "False",
				LastTransitionTime: at(1)}}
		}, crashes},
		"crashes":       {containers(crashed), crashes},
		"out of memory": {containers(killed), story.Now{Why: "CrashLoopBackOff (OOMKilled, exit code 137)"}},
		"ended":         {containers(running("side", 1), ended), story.Now{Why: "exit code 2"}},
		"runs": {containers(running("web", 1), well),
			story.Now{Why: "container web runs and is not ready"}},
		"on its way":         {containers(waiting("web", "ContainerCreating")), story.Now{Why: "ContainerCreating"}},
		"the one that fails": {containers(waiting("a", "ContainerCreating"), crashed), crashes},
		"nothing known": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending },
			story.Now{Why: "Pending"}},
		"deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = new(at(60)) },
			story.Now{Why: "Terminating"}},
		"init container fails": {initializing(crashed),
			story.Now{Why: "init container web is in CrashLoopBackOff (exit code 1)"}},
		"init container": {initializing(sidecar, running("setup", 1)), story.Now{Why: "init container setup runs"}},
		"no node": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False",
				Reason: "Unschedulable"}}
		}, story.Now{Why: "Unschedulable"}},
		"succeeded": {func(p *corev1.Pod) {
			p.Status.Phase, p.Status.ContainerStatuses = corev1.PodSucceeded, []corev1.ContainerStatus{well}
		}, story.Now{Over: "succeeded", Ended: at(4).Time}},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", CreationTimestamp: at(0)}}
		test.change(p)
		test.want.At = asked
		if got := Now(p, asked); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	if got := Now(&corev1.Pod{}, time.Time{}); got.Ready {
		t.Error("a pod without conditions is Ready")
	}
}
