package nodeunschedulable

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func pod(tolerations ...corev1.Toleration) *model.PodInfo {
	return model.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{Tolerations: tolerations}})
}

func node(cordoned bool) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{Spec: corev1.NodeSpec{Unschedulable: cordoned}})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	tolerates := corev1.Toleration{Key: "node.kubernetes.io/unschedulable", Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoSchedule}
	other := tolerates
	other.Key = "node.kubernetes.io/not-ready"
	for _, c := range []struct {
		name     string
		pod      *model.PodInfo
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
		if st.IsSuccess() != c.fits ||
			!c.fits && (st.Code != framework.UnschedulableAndUnresolvable ||
				st.Message() != "node(s) were unschedulable") {
			t.Errorf("%s: %+v, want fits %v", c.name, st, c.fits)
		}
	}
}

func TestWakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"uncordoned", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateTaints,
			New: node(false).Node}, true},
		{"cordoned", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateTaints,
			New: node(true).Node}, false},
		{"open node comes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add,
			New: node(false).Node}, true},
		{"the pod gets a toleration",
			clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateTolerations}, true},
	} {
		got := slices.ContainsFunc(Plugin{}.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(pod(), c.e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
