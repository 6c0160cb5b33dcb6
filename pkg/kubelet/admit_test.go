package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"bonsai/pkg/kubelet/client"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/sysctl"
)

func TestReject(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"disk": "ssd"}},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("3")}}}
	make := func(cpu string, port int32) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{HostPort: port, Protocol: "TCP"}},
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}}}
	}
	elsewhere := make("0", 0)
	elsewhere.Spec.NodeSelector = map[string]string{"disk": "hdd"}
	for _, c := range []struct {
		name            string
		pod             *corev1.Pod
		others          []*corev1.Pod
		reason, message string
	}{
		{"fits", make("400m", 0), []*corev1.Pod{make("600m", 0)}, "", ""},
		{"cpu", make("500m", 0), []*corev1.Pod{make("600m", 0)}, "OutOfcpu",
			"Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 600, capacity: 1000"},
		{"pods", make("0", 0), []*corev1.Pod{make("0", 0), make("0", 0), make("0", 0)}, "OutOfpods",
			"Pod was rejected: Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"},
		{"selector", elsewhere, nil, "NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed"},
		{"ports", make("0", 80), []*corev1.Pod{make("0", 80)}, "NodePorts", "Pod was rejected: Predicate NodePorts failed"},
	} {
		r := reject(c.pod, node, c.others)
		if r == nil {
			r = &rejection{}
		}
		if r.Reason != c.reason || r.Message != c.message {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
	if reject(make("9", 0), nil, nil) != nil {
		t.Error("a node that is not known must take all")
	}
}

// TestUnsupported: a pod of another operating system and one with a forbidden kernel parameter are refused on sight, those of
// the node's manifests too.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	allowed, err := sysctl.New([]string{"net.core.somaxconn"})
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	k := &Kubelet{cfg: Config{Sysctls: allowed}, events: newRecorder(remote, "n"), states: map[types.UID]*podState{}}
	for name, c := range map[string]struct {
		spec            corev1.PodSpec
		reason, message string
	}{
		"linux":          {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Linux}}, "", ""},
		"windows":        {corev1.PodSpec{OS: &corev1.PodOS{Name: corev1.Windows}}, "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"},
		"allowed sysctl": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "net.core.somaxconn"}}}}, "", ""},
		"unsafe sysctl": {corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax"}}}},
			"SysctlForbidden", `forbidden sysctl: "kernel.msgmax" not allowlisted`},
	} {
		got := unsupported(&corev1.Pod{Spec: c.spec}, allowed)
		if got == nil {
			got = &rejection{}
		}
		if got.Reason != c.reason || got.Message != c.message {
			t.Errorf("%s: %+v", name, got)
		}
		static := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{runtime.AnnotationConfigSource: runtime.SourceFile}}, Spec: c.spec}
		if st := k.state("u"); c.reason != "" && k.admit(static, st, &runtime.PodStatus{}) {
			t.Errorf("%s: the static pod was admitted", name)
		}
	}
}

func TestCheckUser(t *testing.T) {
	t.Parallel()
	yes, zero, one := true, int64(0), int64(1)
	for name, c := range map[string]struct {
		sc  *corev1.SecurityContext
		img runtime.Image
		ok  bool
	}{
		"no demand":       {nil, runtime.Image{}, true},
		"image of root":   {&corev1.SecurityContext{RunAsNonRoot: &yes}, runtime.Image{UID: &zero}, false},
		"image says none": {&corev1.SecurityContext{RunAsNonRoot: &yes}, runtime.Image{}, false},
		"named user":      {&corev1.SecurityContext{RunAsNonRoot: &yes}, runtime.Image{Username: "web"}, false},
		"user of its own": {&corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: &one}, runtime.Image{UID: &zero}, true},
		"root demanded":   {&corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: &zero}, runtime.Image{UID: &one}, false},
	} {
		if err := checkUser(&corev1.Pod{}, &corev1.Container{SecurityContext: c.sc}, &c.img); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExcess(t *testing.T) {
	t.Parallel()
	c := func(id string, s runtime.State) runtime.Container {
		return runtime.Container{ID: runtime.ContainerID{ID: id}, Name: "c", State: s}
	}
	p := &runtime.PodStatus{Containers: []runtime.Container{c("4", runtime.StateRunning), c("3", runtime.StateExited), c("2", runtime.StateExited), c("1", runtime.StateExited)}}
	var got string
	for _, x := range excess(p) {
		got += x.ID.ID
	}
	if got != "21" {
		t.Errorf("removed %q, want all but the running one and the last dead one", got)
	}
}
