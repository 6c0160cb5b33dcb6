package cri

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/cpuquota"
	"bonsai/pkg/kubelet/memoryqos"
	"bonsai/pkg/kubelet/runtime"
)

// TestSidecarScore: a sidecar's score is not above that of the regular containers (KEP-753, "OOM score adjustment").
func TestSidecarScore(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	c := func(name, memory string, policy *corev1.ContainerRestartPolicy) corev1.Container {
		return corev1.Container{Name: name, RestartPolicy: policy,
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{c("a", "500", nil), c("b", "300", nil)},
		InitContainers: []corev1.Container{c("small", "10", &always), c("large", "400", &always),
			c("init", "10", nil)}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
	for i, want := range []int64{700, 600, 990} {
		if got := oomScore(pod, &pod.Spec.InitContainers[i], 1000); got != want {
			t.Errorf("%s: %d, want %d", pod.Spec.InitContainers[i].Name, got, want)
		}
	}
}

// TestPodLevelResources: what a pod requests beyond its containers counts for each of them, in equal parts, and its
// limit of CPU stands in for the request of a container that has neither (KEP-2837).
func TestPodLevelResources(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu),
			corev1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Resources:      &corev1.ResourceRequirements{Requests: list("2", "700"), Limits: list("3", "900")},
		InitContainers: []corev1.Container{{Name: "side", RestartPolicy: &always}},
		Containers: []corev1.Container{
			{Name: "own", Resources: corev1.ResourceRequirements{Requests: list("1", "300")}}, {Name: "none"}}},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSBurstable}}
	node := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1000")}
	for _, c := range []struct {
		container     *corev1.Container
		score, shares int64
	}{{&pod.Spec.Containers[0], 500, 1024}, {&pod.Spec.Containers[1], 800, 3072},
		{&pod.Spec.InitContainers[0], 800, 3072}} {
		r := resources(runtime.ContainerRequest{Pod: pod, Container: c.container, Node: node}, Containers{})
		if r.OomScoreAdj != c.score || r.CpuShares != c.shares {
			t.Errorf("%s: score %d, shares %d; want %d, %d", c.container.Name, r.OomScoreAdj, r.CpuShares, c.score,
				c.shares)
		}
	}
}

// TestSwap: with v2 a container is held to its swap, 0 without any; with v1 to its memory and no swap. Where the kernel
// cannot limit swap nothing is asked.
func TestSwap(t *testing.T) {
	t.Parallel()
	ct := corev1.Container{Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{"memory": resource.MustParse("1Mi")}}}
	for _, c := range []struct {
		options runtime.ContainerOptions
		v2      bool
		unified string
		both    int64
	}{
		{runtime.ContainerOptions{LimitSwap: true, Swap: 4096}, true, "4096", 0},
		{runtime.ContainerOptions{LimitSwap: true}, true, "0", 0},
		{runtime.ContainerOptions{Swap: 4096}, true, "", 0},
		{runtime.ContainerOptions{LimitSwap: true}, false, "", 1 << 20},
		{runtime.ContainerOptions{}, false, "", 0},
	} {
		r := resources(runtime.ContainerRequest{Pod: &corev1.Pod{}, Container: &ct, Options: c.options},
			Containers{CgroupV2: c.v2})
		if r.Unified["memory.swap.max"] != c.unified || r.MemorySwapLimitInBytes != c.both {
			t.Errorf("%+v, v2 %t: %+v", c.options, c.v2, r)
		}
	}
}

// TestCPUQuota: containers and sandboxes have the node's periods, and no quota where limits of CPU are not kept; one of
// an earlier kubelet ends with the container's next update.
func TestCPUQuota(t *testing.T) {
	t.Parallel()
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}}}}
	for name, c := range map[string]struct {
		cpu                    cpuquota.Quota
		period, quota, updated int64
	}{
		"default": {cpuquota.Quota{}, 100_000, 50_000, 50_000},
		"period":  {cpuquota.Quota{Period: 20 * time.Millisecond}, 20_000, 10_000, 10_000},
		"least":   {cpuquota.Quota{Period: time.Millisecond}, 1000, 1000, 1000},
		"off":     {cpuquota.Quota{Off: true}, 0, 0, -1},
	} {
		all := Containers{CPU: c.cpu}
		made := resources(runtime.ContainerRequest{Pod: pod, Container: &pod.Spec.Containers[0]}, all)
		sandbox := sandboxConfig(pod, runtime.SandboxOptions{}, all).Linux.Resources
		for what, r := range map[string]*runtimeapi.LinuxContainerResources{"container": made, "sandbox": sandbox} {
			if r.CpuPeriod != c.period || r.CpuQuota != c.quota || r.CpuShares != 512 {
				t.Errorf("%s: the %s has %v", name, what, r)
			}
		}
		if r := updated(made); r.CpuPeriod != c.period || r.CpuQuota != c.updated {
			t.Errorf("%s: an update sends %v", name, r)
		}
	}
}

// TestNoCPUQuota: a container that has CPUs for itself has no quota, and keeps its shares.
func TestNoCPUQuota(t *testing.T) {
	t.Parallel()
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	c := corev1.Container{Resources: corev1.ResourceRequirements{Limits: list, Requests: list}}
	made := resources(runtime.ContainerRequest{Pod: &corev1.Pod{}, Container: &c,
		Options: runtime.ContainerOptions{CPUs: "1-2", NoCPUQuota: true}}, Containers{})
	if made.CpuQuota != 0 || made.CpuPeriod != 0 || made.CpuShares != 2048 || made.CpusetCpus != "1-2" {
		t.Errorf("made with %v", made)
	}
	if r := updated(made); r.CpuQuota != -1 {
		t.Errorf("an update sends %v", r)
	}
}

// What the runtime tells of a container's cgroup is what its resources were made of.
func TestResourcesAreReadBack(t *testing.T) {
	t.Parallel()
	for milli := int64(10); milli < 5000; milli += 7 {
		q := resource.NewMilliQuantity(milli, resource.DecimalSI)
		c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *q},
			Limits: corev1.ResourceList{"cpu": *q, "memory": resource.MustParse("1Gi")}}}
		got := told(updated(resources(runtime.ContainerRequest{Pod: &corev1.Pod{}, Container: &c}, Containers{})))
		if want := (runtime.ContainerResources{MilliCPURequest: milli, MilliCPULimit: milli,
			MemoryLimit: 1 << 30}); *got != want {
			t.Fatalf("%dm: %+v", milli, got)
		}
	}
	if got := told(updated(resources(runtime.ContainerRequest{Pod: &corev1.Pod{}, Container: &corev1.Container{}},
		Containers{CgroupV2: true}))); *got != (runtime.ContainerResources{MilliCPURequest: 2}) {
		t.Errorf("without requests: %+v", got)
	}
	whole := &corev1.Pod{Spec: corev1.PodSpec{
		Resources: &corev1.ResourceRequirements{
			Limits: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}}}}
	own := corev1.Container{
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("1Mi")}}}
	if got := told(resources(runtime.ContainerRequest{Pod: whole, Container: &own},
		Containers{CgroupV2: true})); *got !=
		(runtime.ContainerResources{MilliCPURequest: 2000, MilliCPULimit: 2000, MemoryLimit: 1 << 20}) {
		t.Errorf("under the pod's limits: %+v", got)
	}
	if told(nil) != nil {
		t.Error("a runtime that does not tell")
	}
}

// Details that were read before an update do not come back after it.
func TestAnUpdateIsNotForgotten(t *testing.T) {
	t.Parallel()
	m, c := newMemory(), runtime.Container{ID: runtime.ContainerID{ID: "c"}, State: runtime.StateRunning}
	reads := m.reads()
	m.forgetContainer("c")
	m.keepContainer(c, reads)
	if _, ok := m.container(c); ok {
		t.Error("what was read before the update was kept")
	}
	m.keepContainer(c, m.reads())
	m.forgetContainer("c")
	if _, ok := m.container(c); ok {
		t.Error("what was known before the update is still known")
	}
}

// TestMemoryQoS: with v2 a container's memory is protected and throttled as the node says, when it is made and when it
// is changed; without the feature, the throttle of an earlier kubelet goes.
func TestMemoryQoS(t *testing.T) {
	t.Parallel()
	list := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	burstable := corev1.ResourceRequirements{Requests: list("40Mi"), Limits: list("80Mi")}
	for name, c := range map[string]struct {
		all   Containers
		class corev1.PodQOSClass
		want  map[string]string
	}{
		"burstable": {Containers{CgroupV2: true, Memory: memoryqos.QoS{Protect: true, Factor: 0.5}},
			corev1.PodQOSBurstable, map[string]string{memoryMin: "0", memoryLow: "41943040", memoryHigh: "62914560"}},
		"guaranteed": {Containers{CgroupV2: true, Memory: memoryqos.QoS{Protect: true, Factor: 0.5}},
			corev1.PodQOSGuaranteed, map[string]string{memoryMin: "41943040", memoryLow: "0"}},
		"default": {Containers{CgroupV2: true}, corev1.PodQOSBurstable, nil},
		"off": {Containers{CgroupV2: true, Memory: memoryqos.QoS{Off: true}}, corev1.PodQOSBurstable,
			map[string]string{memoryHigh: "max"}},
		"v1": {Containers{Memory: memoryqos.QoS{Protect: true, Factor: 0.5}}, corev1.PodQOSBurstable, nil},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{QOSClass: c.class}}
		made := resources(runtime.ContainerRequest{Pod: pod, Container: &corev1.Container{Resources: burstable}}, c.all)
		changed := updated(made)
		delete(made.Unified, "memory.oom.group")
		if len(made.Unified) != len(c.want) || len(c.want) > 0 && !maps.Equal(made.Unified, c.want) ||
			!maps.Equal(changed.Unified, c.want) {
			t.Errorf("%s: made with %v, changed to %v, want %v", name, made.Unified, changed.Unified, c.want)
		}
	}
}
