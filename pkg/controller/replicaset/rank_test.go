package replicaset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var now = time.Unix(1_000_000, 0)

// pod is Running and ready on node n1 for an hour, unless changed.
func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	hour := metav1.NewTime(now.Add(-time.Hour))
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: hour},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: hour,
		}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

// TestDeletionOrder has each rule of the documented order once: of two pods that differ in it, "victim" goes.
func TestDeletionOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(victim *corev1.Pod)
		other  func(*corev1.Pod)
	}{
		{"unassigned", func(p *corev1.Pod) { p.Spec.NodeName = "" }, nil},
		{"pending", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, nil},
		{"unknown before running", func(p *corev1.Pod) { p.Status.Phase = corev1.PodUnknown }, nil},
		{"not ready", func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, nil},
		{"cheaper", nil, func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "10"} }},
		{"fuller node", nil, func(p *corev1.Pod) { p.Spec.NodeName = "n2" }},
		{"ready for less time", func(p *corev1.Pod) {
			p.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now.Add(-time.Second))
		}, nil},
		{"more restarts", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
		}, nil},
		{"younger", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute)) }, nil},
		{"cost beats restarts", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: "-1"} },
			func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 9}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pods := []*corev1.Pod{pod("a-keep", c.other), pod("z-victim", c.change)}
			if got := toDelete(pods, map[string]int{"n1": 5, "n2": 1}, 1, now); got[0].Name != "z-victim" {
				t.Errorf("deletes %s", got[0].Name)
			}
		})
	}
}
