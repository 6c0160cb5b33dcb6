package cgroup

import (
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/runtime"
)

// TestLimitedSwap: what a kubelet v1.36.3 with LimitedSwap, 32 GiB of memory and 8 GiB of swap asks of the runtime
// (KEP-2400).
func TestLimitedSwap(t *testing.T) {
	t.Parallel()
	swap := Swap{Limited: true, NodeMemory: 32 << 30, NodeSwap: 8 << 30}
	critical, static := podOf("c", container("", "", "1Gi", "")), podOf("s", container("", "", "1Gi", ""))
	priority := int32(runtime.SystemCriticalPriority)
	critical.Spec.Priority = &priority
	static.Annotations = map[string]string{runtime.AnnotationConfigSource: "file"}
	podLevel := podOf("l", container("", "", "64Mi", ""), container("", "", "", ""))
	both := corev1.ResourceList{"memory": resource.MustParse("128Mi")}
	podLevel.Spec.Resources = &corev1.ResourceRequirements{Requests: both, Limits: both}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want []int64
	}{
		"burstable": {podOf("b", container("", "", "1Gi", "2Gi"), container("", "", "512Mi", ""),
			container("10m", "", "", ""), container("", "", "100Mi", "100Mi"), container("", "", "1000001", "")),
			[]int64{268435456, 134217728, 0, 0, 250000}},
		"guaranteed":          {podOf("g", container("10m", "10m", "1Gi", "1Gi")), []int64{0}},
		"best effort":         {podOf("e", container("", "", "", "")), []int64{0}},
		"critical":            {critical, []int64{0}},
		"static":              {static, []int64{0}},
		"pod-level resources": {podLevel, []int64{16777216, 0}},
		"more than there is":  {podOf("m", container("", "", "33Gi", "")), []int64{0}},
	} {
		var all int64
		for i := range c.want {
			if got := swap.limit(c.pod, &c.pod.Spec.Containers[i]); got != c.want[i] {
				t.Errorf("%s: container %d gets %d, want %d", name, i, got, c.want[i])
			}
			if got := (Swap{NodeMemory: 32 << 30, NodeSwap: 8 << 30}).limit(c.pod,
				&c.pod.Spec.Containers[i]); got != 0 {
				t.Errorf("%s: container %d gets %d with NoSwap", name, i, got)
			}
			all += c.want[i]
		}
		if v := (&Config{Swap: swap}).forPod(c.pod); v.swap != all || v.noSwap != (all == 0) {
			t.Errorf("%s: the pod's cgroup %+v, want %d", name, v, all)
		}
	}
}

// LimitedSwap needs cgroup v2, whose container and pod limits are of swap alone.
func TestLimitedSwapVersion(t *testing.T) {
	t.Parallel()
	one, _ := fakeTree(t, false)
	two, _ := fakeTree(t, true)
	for _, m := range []*Manager{one, two} {
		cfg := m.cfg
		cfg.Log, cfg.Swap = slog.New(slog.DiscardHandler), Swap{Limited: true, NodeMemory: 4 << 30, NodeSwap: 1 << 30}
		limited, err := New(cfg)
		if m == one {
			if err == nil || !strings.Contains(err.Error(), "only supported with cgroupv2") {
				t.Error("v1:", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var o runtime.ContainerOptions
		pod := podOf("p", container("", "", "1Gi", ""))
		if err := limited.Container(pod, &pod.Spec.Containers[0], &o); err != nil || o.Swap != 256<<20 {
			t.Error("v2:", o, err)
		}
		if got := limited.tree.settings(cfg.forPod(pod),
			present{}); got[len(got)-1] != (setting{"memory", "memory.swap.max", "268435456"}) {
			t.Error("v2: the pod's cgroup:", got)
		}
	}
}

// The memory of a container with swap changes only by a restart: nothing updates its swap.
func TestResizeWithSwap(t *testing.T) {
	t.Parallel()
	m := &Manager{cfg: Config{Swap: Swap{Limited: true, NodeMemory: 4 << 30, NodeSwap: 1 << 30}}}
	was := podOf("p", container("1", "", "1Gi", ""), container("1", "1", "", ""))
	was.Spec.Containers[0].Name, was.Spec.Containers[1].Name = "a", "b"
	for name, c := range map[string]struct {
		cpu, memory string
		policy      corev1.ResourceResizeRestartPolicy
		refused     bool
	}{
		"cpu":                     {"2", "1Gi", corev1.NotRequired, false},
		"memory":                  {"1", "2Gi", corev1.NotRequired, true},
		"memory, without policy":  {"1", "2Gi", "", true},
		"memory, with a restart":  {"1", "2Gi", corev1.RestartContainer, false},
		"memory to what has none": {"1", "8Gi", "", false},
	} {
		pod := was.DeepCopy()
		pod.Spec.Containers[0].Resources = container(c.cpu, "", c.memory, "").Resources
		if c.policy != "" {
			pod.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{
				{ResourceName: "memory", RestartPolicy: c.policy}}
		}
		if why := m.MayResize(pod, runtime.ResourcesOf(was)); (why != "") != c.refused {
			t.Errorf("%s: %q", name, why)
		}
		if why := (&Manager{}).MayResize(pod, runtime.ResourcesOf(was)); why != "" {
			t.Errorf("%s with NoSwap: %q", name, why)
		}
	}
}
