package main

import (
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	lost := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 255, Reason: "Unknown"}}
	cut := corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError",
			Message: "failed to start containerd task: context canceled: unknown"}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}}
	of := func(name string, restarts int32, state, last corev1.ContainerState) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: name, RestartCount: restarts, State: state, LastTerminationState: last}}
	}
	var none corev1.ContainerState
	for name, c := range map[string]struct {
		victim   string // killed during the pod's life
		policy   corev1.RestartPolicy
		phase    corev1.PodPhase
		statuses []corev1.ContainerStatus
		want     bool // something is left to explain
	}{
		"runs": {"n1/containerd", corev1.RestartPolicyAlways, corev1.PodRunning,
			of("c", 0, none, none), false},
		"restarted, nothing known": {"n1/containerd", corev1.RestartPolicyAlways, corev1.PodRunning,
			of("c", 1, none, none), true},
		"idle container lost": {"n1/containerd", corev1.RestartPolicyAlways, corev1.PodRunning,
			of("c", 1, none, lost), true},
		"init's exit code lost": {"n1/containerd", corev1.RestartPolicyAlways, corev1.PodPending,
			of("init", 1, none, lost), false},
		"init restarted once more": {"n1/containerd", corev1.RestartPolicyAlways, corev1.PodPending,
			of("init", 2, none, lost), true},
		"exit code lost": {"n1/containerd", corev1.RestartPolicyNever, corev1.PodFailed,
			of("c", 0, lost, none), false},
		"exit code lost, other node's containerd": {"n2/containerd", corev1.RestartPolicyNever, corev1.PodFailed,
			of("c", 0, lost, none), true},
		"start cut": {"n1/kubelet", corev1.RestartPolicyAlways, corev1.PodRunning,
			of("c", 1, none, cut), false},
		"start cut by nobody": {"kube-apiserver", corev1.RestartPolicyAlways, corev1.PodRunning,
			of("c", 1, none, cut), true},
		"failed": {"n1/containerd", corev1.RestartPolicyNever, corev1.PodFailed,
			of("c", 0, failed, none), true},
		"evicted": {"n1/containerd", corev1.RestartPolicyNever, corev1.PodFailed, nil,
			true},
	} {
		j := newJournal(io.Discard)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(time.Now().Truncate(time.Second))},
			Spec:   corev1.PodSpec{NodeName: "n1", RestartPolicy: c.policy},
			Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: c.statuses}}
		j.killed(c.victim)
		if _, all := explain(pod, j); all == c.want {
			t.Errorf("%s: all explained: %t, want %t", name, all, !c.want)
		}
	}
}
