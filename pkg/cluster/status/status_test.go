package status

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
)

// TestStatusTables: what runs shows what it has, what is down shows how it ended; nodes show what the API says of them.
func TestStatusTables(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	var out strings.Builder
	err := printComponents(&out, []component{
		{Process: Process{Where: "host", ProcessStatus: supervise.ProcessStatus{Name: "etcd", PID: 12,
			Started: now.Add(-time.Minute)}},
			before: host.Usage{CPU: time.Second}, after: host.Usage{RSS: 33 << 20, CPU: 1250 * time.Millisecond}},
		{Process: Process{Where: "n1", ProcessStatus: supervise.ProcessStatus{Name: "kubelet", Restarts: 3,
			LastExit: "exit status 1"}}},
	}, 500*time.Millisecond, now)
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string, status corev1.ConditionStatus) nodeState {
		return nodeState{Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}},
				Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.77.0.11"}}}}, pods: 3,
			ready: 2}
	}
	nodes := []nodeState{node("n1", corev1.ConditionTrue), node("n2", corev1.ConditionUnknown)}
	nodes[1].Spec.Unschedulable = true
	if err := printNodes(&out, nodes, now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"host etcd 12 1m0s 0 33 MiB 50%", "n1 kubelet 0 - 3 - - exit status 1",
		"n1 Ready 1h0m0s 2/3 ready 10.77.0.11", "n2 NotReady,SchedulingDisabled"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("no %q in:\n%s", want, &out)
		}
	}
	c := plantest.Config(t)
	if errs := notReady(c, nodes); len(errs) != 1 || !strings.Contains(errs[0].Error(), "n2 is not Ready") {
		t.Errorf("%v", errs)
	}
}

// TestLine: a cluster whose API server does not answer says so.
func TestLine(t *testing.T) {
	t.Parallel()
	if line := Line(t.Context(), plantest.Config(t)); !strings.HasPrefix(line, "the API server does not answer: ") {
		t.Errorf("%q", line)
	}
}
