package noderesources

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// list reads "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, w := range strings.Fields(text) {
		name, value, _ := strings.Cut(w, "=")
		out[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return out
}

func node(allocatable string, pods ...*model.PodInfo) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{Status: corev1.NodeStatus{Allocatable: list(allocatable)}}, pods...)
}

func container(requests string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests)}}
}

// pod has one container per text.
func pod(requests ...string) *model.PodInfo {
	p := &corev1.Pod{}
	for _, r := range requests {
		p.Spec.Containers = append(p.Spec.Containers, container(r))
	}
	return model.NewPodInfo(p)
}

func TestFilter(t *testing.T) {
	t.Parallel()
	no, never := framework.Unschedulable, framework.UnschedulableAndUnresolvable
	const roomy = "cpu=2 memory=4Gi ephemeral-storage=10Gi pods=10 example.com/gpu=2 hugepages-2Mi=4Mi"
	for _, c := range []struct {
		name, allocatable string
		has, pod          *model.PodInfo
		want              string
		code              framework.Code
	}{
		{name: "nothing asked", allocatable: "pods=2", has: pod("cpu=9"), pod: pod("")},
		{name: "exactly the rest", allocatable: roomy, has: pod("cpu=500m memory=1Gi"),
			pod: pod("cpu=1500m memory=3Gi")},
		{name: "a little too much", allocatable: roomy, has: pod("cpu=500m"), pod: pod("cpu=1501m"),
			want: "Insufficient cpu", code: no},
		{name: "more than there is", allocatable: roomy, has: pod(""), pod: pod("cpu=2001m"), want: "Insufficient cpu",
			code: never},
		{name: "containers add up", allocatable: roomy, has: pod(""), pod: pod("memory=2Gi", "memory=3Gi"),
			want: "Insufficient memory", code: never},
		{name: "ephemeral storage", allocatable: roomy, has: pod("ephemeral-storage=6Gi"),
			pod: pod("ephemeral-storage=5Gi"), want: "Insufficient ephemeral-storage", code: no},
		{name: "devices", allocatable: roomy, has: pod("example.com/gpu=1"), pod: pod("example.com/gpu=2"),
			want: "Insufficient example.com/gpu", code: no},
		{name: "a device that the node has not", allocatable: roomy, has: pod(""), pod: pod("example.com/fpga=1"),
			want: "Insufficient example.com/fpga", code: never},
		{name: "none of a device that the node has not", allocatable: roomy, has: pod(""),
			pod: pod("example.com/fpga=0")},
		{name: "huge pages", allocatable: roomy, has: pod("hugepages-2Mi=2Mi"), pod: pod("hugepages-2Mi=4Mi"),
			want: "Insufficient hugepages-2Mi", code: no},
		{name: "every reason, one of them final", allocatable: roomy, has: pod("cpu=1 memory=1Gi"),
			pod:  pod("cpu=2 memory=5Gi example.com/gpu=3 a.example/b=1"),
			want: "Insufficient cpu, Insufficient memory, Insufficient a.example/b, Insufficient example.com/gpu",
			code: never},
		{name: "number of pods", allocatable: "cpu=2 pods=1", has: pod(""), pod: pod(""), want: "Too many pods",
			code: no},
		{name: "overcommitted node", allocatable: "cpu=1 pods=10", has: pod("cpu=3"), pod: pod("cpu=1m"),
			want: "Insufficient cpu", code: no},
	} {
		st := Fit{}.Filter(nil, c.pod, node(c.allocatable, c.has))
		if st.Message() != c.want || !st.IsSuccess() && st.Code != c.code {
			t.Errorf("%s: %+v, want %q with code %d", c.name, st, c.want, c.code)
		}
	}
}

// TestResourcesOfDevices: what devices give is not looked at on nodes that do not have it themselves; a class that
// comes may help.
func TestResourcesOfDevices(t *testing.T) {
	t.Parallel()
	const gpu = "example.com/gpu"
	f := Fit{ByDevices: func(name corev1.ResourceName) bool { return name == gpu }}
	for _, c := range []struct{ name, allocatable, asks, want string }{
		{"no plug-in", "pods=9", gpu + "=2", ""},
		{"a plug-in without devices", "pods=9 " + gpu + "=0", gpu + "=2", ""},
		{"a plug-in with too few", "pods=9 " + gpu + "=1", gpu + "=2", "Insufficient " + gpu},
		{"nobody gives it", "pods=9", gpu + "=2 example.com/fpga=1", "Insufficient example.com/fpga"},
	} {
		if st := f.Filter(nil, pod(c.asks), node(c.allocatable)); st.Message() != c.want {
			t.Errorf("%s: %q, want %q", c.name, st.Message(), c.want)
		}
	}
	if key, without := model.KeyOf(f.Reads), model.KeyOf((Fit{ByDevices: func(corev1.ResourceName) bool {
		return false
	}}).Reads); key(pod(gpu+"=1")) == without(pod(gpu+"=1")) {
		t.Error("the key does not tell whether devices give the resource")
	}
	named := func(resource string) clusterevent.Event {
		return clusterevent.Event{Kind: clusterevent.DeviceClass, Action: clusterevent.Add,
			New: &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "c"},
				Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &resource}}}
	}
	for _, c := range []struct {
		resource, asks string
		want           bool
	}{{gpu, gpu + "=1", true}, {gpu, "deviceclass.resource.kubernetes.io/c=1", true},
		{"example.com/other", gpu + "=1", false}, {gpu, "cpu=1", false}} {
		if got := slices.ContainsFunc(f.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(pod(c.asks), named(c.resource))
		}); got != c.want {
			t.Errorf("a class for %s wakes a pod that asks for %s: %v, want %v", c.resource, c.asks, got, c.want)
		}
	}
}

// TestRequests: what a pod occupies (Kubernetes documentation, "Init Containers" and "Sidecar Containers", resource
// sharing).
func TestRequests(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	sidecar := func(r string) corev1.Container {
		c := container(r)
		c.RestartPolicy = &always
		return c
	}
	for _, c := range []struct {
		name       string
		spec       corev1.PodSpec
		cpu        int64
		nonZeroCPU int64
	}{
		{"sum of containers", corev1.PodSpec{Containers: []corev1.Container{container("cpu=1"), container("cpu=2")}},
			3000, 3000},
		{"largest init container",
			corev1.PodSpec{InitContainers: []corev1.Container{container("cpu=5"), container("cpu=4")},
				Containers: []corev1.Container{container("cpu=1")}}, 5000, 5000},
		{"small init container",
			corev1.PodSpec{InitContainers: []corev1.Container{container("cpu=1")},
				Containers: []corev1.Container{container("cpu=2")}}, 2000, 2000},
		{"sidecars run beside the containers",
			corev1.PodSpec{InitContainers: []corev1.Container{sidecar("cpu=1")},
				Containers: []corev1.Container{container("cpu=2")}}, 3000, 3000},
		{"sidecars run beside later init containers",
			corev1.PodSpec{InitContainers: []corev1.Container{sidecar("cpu=2"), container("cpu=4")},
				Containers: []corev1.Container{container("cpu=1")}}, 6000, 6000},
		{"but not beside earlier ones",
			corev1.PodSpec{InitContainers: []corev1.Container{container("cpu=4"), sidecar("cpu=2")},
				Containers: []corev1.Container{container("cpu=1")}}, 4000, 4000},
		{"overhead", corev1.PodSpec{Overhead: list("cpu=250m"), InitContainers: []corev1.Container{container("cpu=2")},
			Containers: []corev1.Container{container("cpu=1")}}, 2250, 2250},
		{"asked of the pod as a whole",
			corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: list("cpu=4")},
				Containers: []corev1.Container{container("cpu=1")}}, 4000, 4000},
		{"nothing asked", corev1.PodSpec{Containers: []corev1.Container{container(""), container("cpu=1")}}, 1000,
			1100},
		{"nothing asked in words", corev1.PodSpec{Containers: []corev1.Container{container("cpu=0")}}, 0, 0},
	} {
		p := model.NewPodInfo(&corev1.Pod{Spec: c.spec})
		if p.Requests.MilliCPU != c.cpu || p.NonZero.MilliCPU != c.nonZeroCPU {
			t.Errorf("%s: %dm, for scores %dm, want %dm and %dm", c.name, p.Requests.MilliCPU, p.NonZero.MilliCPU,
				c.cpu, c.nonZeroCPU)
		}
	}
	if got := pod("", "memory=1Gi").NonZero.Memory; got != (1024+200)<<20 {
		t.Errorf("memory for scores: %d", got)
	}
}

// TestRunningResizeOccupiesTheLargest of three sums: what the containers ask for, have and were allocated.
func TestRunningResizeOccupiesTheLargest(t *testing.T) {
	t.Parallel()
	status := func(name, actual, allocated string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Resources: &corev1.ResourceRequirements{Requests: list(actual)},
			AllocatedResources: list(allocated)}
	}
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container("cpu=1"), container("cpu=4")}}}
	p.Spec.Containers[0].Name, p.Spec.Containers[1].Name = "shrinks", "grows"
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status("shrinks", "cpu=4", "cpu=2"),
		status("grows", "cpu=2", "cpu=2")}
	if got := model.NewPodInfo(p).Requests.MilliCPU; got != 6000 {
		t.Errorf("while it is resized: %dm, want the 6 that both have together", got)
	}
	p.Spec.Containers[1] = container("cpu=6")
	p.Spec.Containers[1].Name = "grows"
	if got := model.NewPodInfo(p).Requests.MilliCPU; got != 7000 {
		t.Errorf("while it is resized to more: %dm, want the 7 that both ask for together", got)
	}
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
	if got := model.NewPodInfo(p).Requests.MilliCPU; got != 6000 {
		t.Errorf("with a resize that cannot be: %dm, want what it has", got)
	}
}

func TestFitScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, allocatable, used, asks string
		least, most                   int64
	}{
		{"half and half", "cpu=4 memory=4Gi", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi", 50, 50},
		{"mean of both", "cpu=4 memory=4Gi", "cpu=1 memory=2Gi", "cpu=1 memory=2Gi", 25, 75},
		{"empty and nearly nothing asked", "cpu=100 memory=4000Gi", "cpu=0 memory=0", "cpu=1m memory=1Mi", 99, 0},
		{"full", "cpu=2 memory=2Gi", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi", 0, 100},
		{"overcommitted by defaults", "cpu=1 memory=4Gi", "cpu=2 memory=1Gi", "cpu=1 memory=1Gi", 25, 75},
		{"containers without requests count", "cpu=1 memory=2000Mi", "cpu=0 memory=0", "", 90, 10},
		{"a node without memory", "cpu=4", "cpu=1 memory=0", "cpu=1 memory=1Gi", 50, 50},
		{"a node without anything", "", "cpu=0 memory=0", "cpu=1 memory=1Gi", 0, 0},
	} {
		n := node(c.allocatable, pod(c.used))
		if got := (Fit{}).Score(nil, pod(c.asks), n); got != c.least {
			t.Errorf("%s: %d, want %d", c.name, got, c.least)
		}
		if got := (Fit{Strategy: MostAllocated}).Score(nil, pod(c.asks), n); got != c.most {
			t.Errorf("%s, most allocated: %d, want %d", c.name, got, c.most)
		}
	}
}

func TestBalancedScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, allocatable, used, asks string
		want                          int64
	}{
		{"alike", "cpu=4 memory=4Gi", "cpu=1 memory=1Gi", "cpu=1 memory=1Gi", 75},
		{"worse", "cpu=4 memory=4Gi", "cpu=1 memory=2Gi", "cpu=1 memory=2Gi", 69},
		{"the least", "cpu=2 memory=4Gi", "", "cpu=2", 50},
		{"the most, more than all counts as all", "cpu=1 memory=4Gi", "cpu=5", "cpu=1 memory=4Gi", 100},
		{"one resource is always balanced", "cpu=4", "cpu=3", "cpu=1", 75},
		// Those below are of kube-scheduler 1.36.3.
		{"cpu and memory, worse", "cpu=4 memory=4Gi", "cpu=1 memory=2Gi", "cpu=300m memory=1Gi", 70},
		{"cpu and memory, better", "cpu=2 memory=4Gi", "cpu=1500m memory=1Gi", "cpu=300m memory=1Gi", 77},
		{"an empty node", "cpu=1 memory=4Gi", "", "cpu=300m memory=1Gi", 73},
		{"each balance is cut to a whole number", "cpu=8 memory=8Gi", "cpu=600m memory=370Mi", "cpu=380m", 74},
		{"three resources", "cpu=4 memory=4Gi ephemeral-storage=10Gi a.b/gpu=4", "cpu=1 memory=2Gi",
			"cpu=300m memory=1Gi", 70},
		{"three resources, worse in one", "cpu=2 memory=4Gi ephemeral-storage=20Gi", "cpu=1500m memory=1Gi",
			"cpu=300m memory=1Gi", 72},
		{"a device", "cpu=8 memory=8Gi ephemeral-storage=10Gi a.b/gpu=16", "",
			"cpu=250m memory=370Mi ephemeral-storage=200Mi a.b/gpu=1", 74},
	} {
		b := Balanced{}
		if strings.HasPrefix(c.name, "three") || c.name == "a device" {
			b.Resources = []corev1.ResourceName{"cpu", "memory", "ephemeral-storage", "a.b/gpu"}
		}
		if got := b.Score(nil, pod(c.asks), node(c.allocatable, pod(c.used))); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	for asks, skip := range map[string]bool{"": true, "example.com/gpu=1": true, "cpu=1m": false, "memory=1": false} {
		if st := (Balanced{}).PreScore(nil, pod(asks), nil, nil); st.IsSkip() != skip {
			t.Errorf("a pod that asks for %q: %+v, want skip %v", asks, st, skip)
		}
	}
	gpus := Balanced{Resources: []corev1.ResourceName{"cpu", "example.com/gpu"}}
	for asks, skip := range map[string]bool{"": true, "memory=1": true, "example.com/gpu=1": false} {
		if st := gpus.PreScore(nil, pod(asks), nil, nil); st.IsSkip() != skip {
			t.Errorf("with resources, a pod that asks for %q: %+v, want skip %v", asks, st, skip)
		}
	}
}

func TestFitWakes(t *testing.T) {
	t.Parallel()
	nodeEvent := func(a clusterevent.Action, allocatable string) clusterevent.Event {
		return clusterevent.Event{Kind: clusterevent.Node, Action: a, New: node(allocatable).Node}
	}
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"a pod goes", clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete}, true},
		{"a pod shrinks", clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.UpdateRequests},
			true},
		{"a pod comes", clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Add}, false},
		{"the pod asks for less", clusterevent.Event{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateRequests},
			true},
		{"a large node comes", nodeEvent(clusterevent.Add, "cpu=2 pods=1"), true},
		{"a small node comes", nodeEvent(clusterevent.Add, "cpu=1 pods=1"), false},
		{"a node grows enough", nodeEvent(clusterevent.UpdateAllocatable, "cpu=2 pods=1"), true},
		{"a node grows too little", nodeEvent(clusterevent.UpdateAllocatable, "cpu=1999m pods=1"), false},
		{"a large node's labels", nodeEvent(clusterevent.UpdateLabels, "cpu=2 pods=1"), false},
	} {
		got := slices.ContainsFunc(Fit{}.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(pod("cpu=2"), c.e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
