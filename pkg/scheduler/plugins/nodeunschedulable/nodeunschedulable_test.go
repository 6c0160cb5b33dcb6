package nodeunschedulable

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
)

func pod(tolerations ...corev1.Toleration) *framework.PodInfo {
	return framework.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations}})
}

func node(cordoned bool) *framework.NodeInfo {
	return framework.NewNodeInfo(&corev1.Node{Spec: corev1.NodeSpec{Unschedulable: cordoned}})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	tolerates := corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	other := tolerates
	other.Key = "node.kubernetes.io/not-ready"
	for _, c := range []struct {
		name     string
		pod      *framework.PodInfo
		cordoned bool
		fits     bool
	}{
		{"open node", pod(), false, true},
		{"cordoned node", pod(), true, false},
		{"the taint of cordoned nodes is tolerated", pod(tolerates), true, true},
		{"everything is tolerated", pod(corev1.Toleration{Operator: corev1.TolerationOpExists}), true, true},
		{"another taint is tolerated", pod(other), true, false},
	} {
		st := Plugin{}.Filter(nil, c.pod, node(c.cordoned))
		if st.IsSuccess() != c.fits || !c.fits && (st.Code != framework.UnschedulableAndUnresolvable || st.Message() != "node(s) were unschedulable") {
			t.Errorf("%s: %+v, want fits %v", c.name, st, c.fits)
		}
	}
}

func TestWakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		e    framework.Event
		want bool
	}{
		{"uncordoned", framework.Event{Kind: framework.NodeEvent, Action: framework.UpdateTaints, New: node(false).Node}, true},
		{"cordoned", framework.Event{Kind: framework.NodeEvent, Action: framework.UpdateTaints, New: node(true).Node}, false},
		{"open node comes", framework.Event{Kind: framework.NodeEvent, Action: framework.Add, New: node(false).Node}, true},
		{"the pod gets a toleration", framework.Event{Kind: framework.TargetPod, Action: framework.UpdateTolerations}, true},
	} {
		got := slices.ContainsFunc(Plugin{}.EventsToRegister(), func(i framework.Interest) bool { return i.Helps(pod(), c.e) })
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
