package nodeports

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func port(number int32, more ...string) corev1.ContainerPort {
	p := corev1.ContainerPort{HostPort: number, ContainerPort: 80}
	for _, m := range more {
		if m == "UDP" || m == "SCTP" {
			p.Protocol = corev1.Protocol(m)
		} else {
			p.HostIP = m
		}
	}
	return p
}

func pod(ports ...corev1.ContainerPort) *model.PodInfo {
	return model.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: ports}}}})
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		has, want corev1.ContainerPort
		fits      bool
	}{
		{"the same", port(80), port(80), false},
		{"another number", port(80), port(81), true},
		{"another protocol", port(80), port(80, "UDP"), true},
		{"the same protocol", port(80, "SCTP"), port(80, "SCTP"), false},
		{"two addresses", port(80, "10.0.0.1"), port(80, "10.0.0.2"), true},
		{"one address", port(80, "10.0.0.1"), port(80, "10.0.0.1"), false},
		{"every address is taken", port(80), port(80, "10.0.0.1"), false},
		{"every address is wanted", port(80, "10.0.0.1"), port(80), false},
		{"every address in words", port(80, "0.0.0.0"), port(80, "10.0.0.1"), false},
		{"every address, another protocol", port(80, "UDP"), port(80, "10.0.0.1"), true},
	} {
		n := model.NewNodeInfo(&corev1.Node{}, pod(port(9000), c.has))
		st := Plugin{}.Filter(nil, pod(port(9001), c.want), n)
		if st.IsSuccess() != c.fits {
			t.Errorf("%s: %+v, want fits %v", c.name, st, c.fits)
		}
		if !c.fits && (st.Code != framework.Unschedulable ||
			st.Message() != "node(s) didn't have free ports for the requested pod ports") {
			t.Errorf("%s: %+v: preempting the holder helps", c.name, st)
		}
	}
}

func TestWhichPortsCount(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	init := func(p int32, r *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{RestartPolicy: r, Ports: []corev1.ContainerPort{port(p)}}
	}
	info := model.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{init(1, nil), init(2, &always)},
		Containers: []corev1.Container{init(3, nil),
			{Ports: []corev1.ContainerPort{{ContainerPort: 4}, port(5, "UDP", "10.0.0.1")}}},
	}})
	want := []model.HostPort{{Protocol: "TCP", IP: "0.0.0.0", Port: 2}, {Protocol: "TCP", IP: "0.0.0.0", Port: 3},
		{Protocol: "UDP", IP: "10.0.0.1", Port: 5}}
	if !slices.Equal(info.Ports, want) {
		t.Errorf("ports %v, want %v: init containers end before the others start, sidecars do not", info.Ports, want)
	}
	for _, c := range []struct {
		pod  *model.PodInfo
		skip bool
	}{{info, false}, {pod(corev1.ContainerPort{ContainerPort: 80}), true}} {
		if names, st := (Plugin{}).PreFilter(nil, c.pod, nil); st.IsSkip() != c.skip || names != nil {
			t.Errorf("ports %v: %v %+v", c.pod.Ports, names, st)
		}
	}
}

func TestOnlyTheHolderOfAPortWakes(t *testing.T) {
	t.Parallel()
	waits := pod(port(80), port(443, "UDP"))
	gone := func(p *model.PodInfo) clusterevent.Event {
		return clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: p}
	}
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"holder goes", gone(pod(port(443, "UDP", "10.0.0.1"))), true},
		{"another goes", gone(pod(port(443), port(8080))), false},
		{"one without ports goes", gone(pod()), false},
		{"holder changes", clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.UpdateLabels,
			Old: pod(port(80))}, false},
		{"node comes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add}, true},
		{"node changes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateTaints}, false},
	} {
		got := slices.ContainsFunc(Plugin{}.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(waits, c.e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
