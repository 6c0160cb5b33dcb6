package profile_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
)

// fullPod uses every field that decisions read.
func fullPod() *corev1.Pod {
	term := corev1.PodAffinityTerm{TopologyKey: "zone",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations: []corev1.Toleration{
				{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}},
			Affinity: &corev1.Affinity{
				NodeAffinity: &corev1.NodeAffinity{
					PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}},
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}},
			InitContainers:            []corev1.Container{{Name: "i", Image: "init:1"}},
			Containers: []corev1.Container{
				{Name: "c", Image: "web:1", Ports: []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("1"),
							"example.com/gpu": resource.MustParse("1")}}}},
		},
	}
}

// TestClassHasWhatPluginsRead: pods with one Class share the verdicts of node-local plug-ins, so a key that lacks a
// field gives wrong answers, and one that has too much costs time.
func TestClassHasWhatPluginsRead(t *testing.T) {
	t.Parallel()
	p, err := profile.New("s", plugins.Default(plugins.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	class := func(pod *corev1.Pod) string {
		key, ok := p.Class(model.NewPodInfo(pod))
		if !ok {
			t.Error("a default plug-in is slow")
		}
		return key
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		class  bool // the key must differ
	}{
		{"name", func(p *corev1.Pod) { p.Name, p.UID = "q", "v" }, false},
		{"priority", func(p *corev1.Pod) { p.Spec.Priority = new(int32(5)) }, false},
		{"namespace", func(p *corev1.Pod) { p.Namespace = "other" }, false},
		{"label value", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "db"} }, false},
		{"one more label", func(p *corev1.Pod) { p.Labels["x"] = "" }, false},
		{"cpu", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2") }, true},
		{"no cpu, counted by default in scores", func(p *corev1.Pod) {
			delete(p.Spec.Containers[0].Resources.Requests, "cpu")
		}, true},
		{"device", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("2")
		}, true},
		{"another device", func(p *corev1.Pod) {
			delete(p.Spec.Containers[0].Resources.Requests, "example.com/gpu")
			p.Spec.Containers[0].Resources.Requests["example.com/fpga"] = resource.MustParse("1")
		}, true},
		{"host port", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostPort = 81 }, true},
		{"host address", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].HostIP = "10.0.0.1" }, true},
		{"host port's protocol", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports[0].Protocol = corev1.ProtocolUDP
		}, true},
		{"container port", func(p *corev1.Pod) { p.Spec.Containers[0].Ports[0].ContainerPort = 81 }, false},
		{"image", func(p *corev1.Pod) { p.Spec.Containers[0].Image = "web:2" }, true},
		{"init image", func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "init:2" }, true},
		{"images the other way round", func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Image, p.Spec.Containers[0].Image = "web:1", "init:1"
		}, true},
		{"node name", func(p *corev1.Pod) { p.Spec.NodeName = "n" }, true},
		{"node selector", func(p *corev1.Pod) { p.Spec.NodeSelector["disk"] = "hdd" }, true},
		{"no node selector", func(p *corev1.Pod) { p.Spec.NodeSelector = nil }, true},
		{"node affinity", func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].Weight = 2
		}, true},
		{"no node affinity", func(p *corev1.Pod) { p.Spec.Affinity.NodeAffinity = nil }, true},
		{"toleration's key", func(p *corev1.Pod) { p.Spec.Tolerations[0].Key = "l" }, true},
		{"toleration's operator", func(p *corev1.Pod) {
			p.Spec.Tolerations[0].Operator = corev1.TolerationOpExists
		}, true},
		{"toleration's value", func(p *corev1.Pod) { p.Spec.Tolerations[0].Value = "w" }, true},
		{"toleration's effect", func(p *corev1.Pod) { p.Spec.Tolerations[0].Effect = "" }, true},
		{"affinity", func(p *corev1.Pod) {
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "host"
		}, false},
		{"no anti-affinity", func(p *corev1.Pod) { p.Spec.Affinity.PodAntiAffinity = nil }, false},
		{"spread constraint", func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints[0].MaxSkew = 2 }, false},
		{"no spread constraint", func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = nil }, false},
	} {
		a, b := fullPod(), fullPod()
		c.change(b)
		if got := class(a) != class(b); got != c.class {
			t.Errorf("%s: class differs: %v, want %v", c.name, got, c.class)
		}
	}
	a, b := fullPod(), fullPod()
	for _, p := range []*corev1.Pod{a, b} {
		p.Spec.InitContainers = nil
		delete(p.Spec.Containers[0].Resources.Requests, "cpu")
	}
	b.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("0")
	if class(a) == class(b) {
		t.Error("no request and a request of nothing are one class")
	}
}
