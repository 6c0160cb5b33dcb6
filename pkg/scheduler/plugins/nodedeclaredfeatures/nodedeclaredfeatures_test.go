package nodedeclaredfeatures

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func node(features string) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{Status: corev1.NodeStatus{DeclaredFeatures: strings.Fields(features)}})
}

func pod(change func(*corev1.PodSpec)) *model.PodInfo {
	p := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "i"}},
		Containers: []corev1.Container{{Name: "c"}}}}
	change(&p.Spec)
	return model.NewPodInfo(p)
}

var (
	plain    = pod(func(*corev1.PodSpec) {})
	restarts = pod(func(s *corev1.PodSpec) {
		s.InitContainers[0].RestartPolicyRules = []corev1.ContainerRestartRule{
			{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	})
	hostUsers = pod(func(s *corev1.PodSpec) { s.HostNetwork, s.HostUsers = true, ptr.To(false) })
	one       = pod(func(s *corev1.PodSpec) {
		s.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{
			{Action: corev1.ContainerRestartRuleActionRestart}}
	})
)

const restart, users = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"

// TestFilter: what kube-scheduler 1.36.3 says of the same pods and nodes.
func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pod  *model.PodInfo
		has  string
		fits bool
	}{
		{"nothing needed, nothing declared", plain, "", true},
		{"a rule that restarts one container", one, "", true},
		{"not declared", restarts, "", false},
		{"others declared", restarts, "InPlacePodVerticalScalingInitContainers " + users, false},
		{"declared", restarts, "InPlacePodVerticalScalingInitContainers " + restart, true},
		{"declared beside what nobody knows", restarts, "AFeature " + restart + " ZFeature", true},
		{"another feature", hostUsers, restart, false},
		{"another feature, declared", hostUsers, users, true},
	} {
		st := New().Filter(nil, c.pod, node(c.has))
		if st.IsSuccess() != c.fits ||
			!c.fits && (st.Code != framework.UnschedulableAndUnresolvable ||
				st.Message() != "node(s) didn't match Pod's required features") {
			t.Errorf("%s: %+v, want fits %v", c.name, st, c.fits)
		}
	}
	key := model.KeyOf(New().Reads)
	if key(plain) != key(one) || key(plain) == key(restarts) || key(restarts) == key(hostUsers) {
		t.Errorf("keys %q %q %q %q", key(plain), key(one), key(restarts), key(hostUsers))
	}
}

func TestWakes(t *testing.T) {
	t.Parallel()
	event := func(a clusterevent.Action, old, now string) clusterevent.Event {
		return clusterevent.Event{Kind: clusterevent.Node, Action: a, Old: node(old).Node, New: node(now).Node}
	}
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"a node that has it comes",
			clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add, New: node(restart).Node}, true},
		{"one without comes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add,
			New: node(users).Node}, false},
		{"it is declared", event(clusterevent.UpdateDeclaredFeatures, "", restart), true},
		{"another is declared", event(clusterevent.UpdateDeclaredFeatures, "", users), false},
		{"labels change", event(clusterevent.UpdateLabels, restart, restart), false},
	} {
		got := slices.ContainsFunc(New().EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(restarts, c.e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
