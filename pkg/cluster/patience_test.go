package cluster

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/plan"
)

// TestPatience: a wait ends when nothing has progressed for so long, however long it has taken; what comes and goes is progress once.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		milestones []string // one a minute
		want       time.Duration
	}{
		"nothing happens":       {nil, 5 * time.Minute},
		"a slow machine":        {[]string{"etcd runs", "node n1", "node n1 is Ready", "pod coredns Ready"}, 9 * time.Minute},
		"a component that ends": {[]string{"n1-kubelet runs", "n1-kubelet runs", "n1-kubelet runs", "n1-kubelet runs"}, 6 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ctx, cancel := WithPatience(t.Context(), 5*time.Minute)
			defer cancel()
			for _, m := range test.milestones {
				time.Sleep(time.Minute)
				progressed(ctx, m)
			}
			<-ctx.Done()
			if took := time.Since(began); took != test.want {
				t.Errorf("%s: ends after %s", name, took)
			}
			if cause := context.Cause(ctx); !strings.Contains(cause.Error(), "no progress for 5m0s (--wait)") {
				t.Errorf("%s: %v", name, cause)
			}
			if progressed(ctx, "too late"); ctx.Err() == nil {
				t.Errorf("%s: goes on", name)
			}
		})
	}
	progressed(t.Context(), "without patience") // is no matter
}

// TestWhyNotReady: what is not ready at the end of a wait is named, with what it says of itself.
func TestWhyNotReady(t *testing.T) {
	t.Parallel()
	node := func(name string, status corev1.ConditionStatus, message string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: status, Message: message}}}}
	}
	c := plan.Config{Nodes: plan.NodesUpTo(3)}
	nodes := map[string]*corev1.Node{"n1": node("n1", corev1.ConditionTrue, ""), "n2": node("n2", corev1.ConditionFalse, "network plugin is not ready")}
	if got, want := whyNotReady(c, nodes), "node n2 is not Ready: network plugin is not ready; node n3 has not registered"; got != want {
		t.Errorf("%s", got)
	}
	nodes["n2"], nodes["n3"] = nodes["n1"], nodes["n1"]
	if got := whyNotReady(c, nodes); got != "" {
		t.Errorf("all are Ready: %s", got)
	}
	for want, pod := range map[string]corev1.PodStatus{
		"ErrImagePull: no such host": {ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}}}}},
		"0/1 nodes are available":    {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}},
		"Running":                    {Phase: corev1.PodRunning},
	} {
		if got := podTrouble(&corev1.Pod{Status: pod}); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
