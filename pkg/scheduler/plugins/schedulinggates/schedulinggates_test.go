package schedulinggates

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func TestGatesHoldBack(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{Spec: corev1.PodSpec{
		SchedulingGates: []corev1.PodSchedulingGate{{Name: "a.example/quota"}, {Name: "b"}}}}
	st := Plugin{}.PreEnqueue(model.NewPodInfo(p))
	if st == nil || st.Code != framework.UnschedulableAndUnresolvable ||
		st.Message() != "waiting for scheduling gates: [a.example/quota b]" {
		t.Errorf("two gates: %+v", st)
	}
	if st := (Plugin{}).PreEnqueue(model.NewPodInfo(&corev1.Pod{})); !st.IsSuccess() {
		t.Errorf("no gates: %+v", st)
	}
	i := Plugin{}.EventsToRegister()[0]
	if !i.Helps(nil, clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateGates}) ||
		i.Helps(nil, clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateLabels}) {
		t.Error("the removal of a gate, and nothing else, must wake the pod")
	}
}
