package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
)

// TestPodActions: a waiting pod is woken only by the parts of a change that its plug-ins asked for.
func TestPodActions(t *testing.T) {
	t.Parallel()
	pod := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}}, Containers: []corev1.Container{{
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		want   framework.Action
	}{
		{"nothing", func(*corev1.Pod) {}, 0},
		{"annotations and conditions", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"x": "y"}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}}
		}, 0},
		{"labels", func(p *corev1.Pod) { p.Labels["a"] = "c" }, framework.UpdateLabels},
		{"requests", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }, framework.UpdateRequests},
		{"the same request in other words", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m") }, 0},
		{"a toleration more", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} }, framework.UpdateTolerations},
		{"a gate less", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }, framework.UpdateGates},
		{"being deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, framework.UpdateOther},
		{"two things", func(p *corev1.Pod) { p.Labels, p.Spec.SchedulingGates = nil, nil }, framework.UpdateLabels | framework.UpdateGates},
	} {
		p := pod()
		c.change(p)
		if got := podActions(framework.NewPodInfo(pod()), framework.NewPodInfo(p)); got != c.want {
			t.Errorf("%s: %b, want %b", c.name, got, c.want)
		}
	}
}

// TestNodeActions: heartbeats must wake nobody.
func TestNodeActions(t *testing.T) {
	t.Parallel()
	node := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1")}}}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Node)
		want   framework.Action
	}{
		{"a heartbeat", func(n *corev1.Node) {
			n.ResourceVersion, n.Status.Conditions = "9", []corev1.NodeCondition{{Type: corev1.NodeReady}}
		}, 0},
		{"allocatable", func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("2") }, framework.UpdateAllocatable},
		{"the same in other words", func(n *corev1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("1000m") }, 0},
		{"labels", func(n *corev1.Node) { n.Labels = nil }, framework.UpdateLabels},
		{"taints", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }, framework.UpdateTaints},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, framework.UpdateTaints},
	} {
		n := node()
		c.change(n)
		if got := nodeActions(node(), n); got != c.want {
			t.Errorf("%s: %b, want %b", c.name, got, c.want)
		}
	}
}
