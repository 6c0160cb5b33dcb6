package client

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/plan"
)

// TestWhyNotReady: what is not ready at the end of a wait is named, with what it says of itself.
func TestWhyNotReady(t *testing.T) {
	t.Parallel()
	node := func(name string, status corev1.ConditionStatus, message string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: status, Message: message}}}}
	}
	c := plan.Config{Nodes: plan.NodesUpTo(3)}
	nodes := map[string]*corev1.Node{"n1": node("n1", corev1.ConditionTrue, ""),
		"n2": node("n2", corev1.ConditionFalse, "network plugin is not ready")}
	if got, want := whyNotReady(c, nodes, nil),
		"node n2 is not Ready: network plugin is not ready; node n3 has not registered"; got != want {
		t.Errorf("%s", got)
	}
	nodes["n2"], nodes["n3"] = nodes["n1"], nodes["n1"]
	if got := whyNotReady(c, nodes, nil); got != "" {
		t.Errorf("all are Ready: %s", got)
	}
	// What a node said before its machine lost power does not count.
	start := time.Date(2026, 1, 1, 0, 0, 0, 500, time.UTC)
	for heartbeat, want := range map[time.Time]string{
		start.Add(-time.Second):     "node n1 has told nothing of itself since its start",
		start.Truncate(time.Second): "",
		start.Add(5 * time.Second):  "",
	} {
		n := node("n1", corev1.ConditionTrue, "")
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(heartbeat)
		if got := whyNotReady(plan.Config{Nodes: plan.NodesUpTo(1)}, map[string]*corev1.Node{"n1": n},
			map[string]time.Time{"n1": start}); got != want {
			t.Errorf("heartbeat at %v: %s", heartbeat, got)
		}
	}
	for want, pod := range map[string]corev1.PodStatus{
		"ErrImagePull: no such host": {
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}}}}},
		"0/1 nodes are available": {
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}},
		"Running": {Phase: corev1.PodRunning},
	} {
		if got := PodTrouble(&corev1.Pod{Status: pod}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

// TestThroughRestarts: a connection that breaks is no end, a refusal is, and so is the time.
func TestThroughRestarts(t *testing.T) {
	t.Parallel()
	broken := fmt.Errorf("create Deployment coredns: %w",
		&url.Error{Op: "Post", URL: "https://s", Err: syscall.ECONNRESET})
	calls := 0
	if err := ThroughRestarts(t.Context(), func() error {
		if calls++; calls < 3 {
			return broken
		}
		return nil
	}); err != nil || calls != 3 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	refused := errors.New("forbidden")
	calls = 0
	if err := ThroughRestarts(t.Context(), func() error {
		calls++
		return refused
	}); !errors.Is(err, refused) || calls != 1 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := ThroughRestarts(ctx, func() error {
		cancel()
		return broken
	}); !errors.Is(err, syscall.ECONNRESET) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
