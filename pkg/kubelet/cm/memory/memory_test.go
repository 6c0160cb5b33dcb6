package memory_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cmtest"
	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/runtime"
)

const gi = 1 << 30

type counts struct{ asked, failed int }

func (c *counts) MemoryPinned(err error) {
	c.asked++
	if err != nil {
		c.failed++
	}
}

// machine has NUMA nodes of so many GiB each, 1 GiB of which is huge pages.
func machine(sizes ...uint64) cm.Machine {
	m := cm.Machine{Memory: map[int]map[corev1.ResourceName]uint64{}}
	for id, size := range sizes {
		m.CPUs = append(m.CPUs, cm.CPU{ID: id, NUMA: id})
		m.Memory[id] = map[corev1.ResourceName]uint64{corev1.ResourceMemory: size * gi, "hugepages-2Mi": gi}
	}
	return m
}

func start(t *testing.T, dir string, m cm.Machine, reserved memory.Reserved) *memory.Manager {
	t.Helper()
	out, err := memory.New(memory.Config{Settings: memory.Settings{Policy: memory.Static, Reserved: reserved},
		RootDir: dir, Machine: m, Metrics: &counts{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// guaranteed is a pod whose containers want so much memory; "init:4Gi" is of an init container, "2Gi+1Gi" with huge
// pages.
func guaranteed(uid string, amounts ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: uid, Namespace: "ns", UID: types.UID(uid)},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSGuaranteed}}
	for i, amount := range amounts {
		amount, init := strings.CutPrefix(amount, "init:")
		amount, pages, huge := strings.Cut(amount, "+")
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
			corev1.ResourceMemory: resource.MustParse(amount)}
		if huge {
			list["hugepages-2Mi"] = resource.MustParse(pages)
		}
		c := corev1.Container{Name: fmt.Sprintf("c%d", i),
			Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}
		if init {
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		} else {
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
	}
	return pod
}

// nodes are those that a pod's containers run with.
func nodes(t *testing.T, m *memory.Manager, pod *corev1.Pod) string {
	t.Helper()
	var out []string
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		o := &runtime.ContainerOptions{}
		if err := m.Container(pod, &c, o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o.MemoryNodes)
	}
	return strings.Join(out, " ")
}

func TestProvider(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmtest.Run(t, func() cm.Provider {
		return start(t, dir, machine(8, 8), memory.Reserved{0: {corev1.ResourceMemory: gi}})
	}, guaranteed("u", "2Gi+512Mi"))
}

// TestAllocate: pods come one after the other to two nodes of 8 GiB (6 of the first, 7 of the second may be given) and
// go where there is room: on one node if they can, else on both, which are a group then and take no pods of single
// nodes.
func TestAllocate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pods []*corev1.Pod
		want []string
	}{
		{"one after the other", []*corev1.Pod{guaranteed("a", "4Gi"), guaranteed("b", "4Gi"), guaranteed("c", "3Gi"),
			guaranteed("d", "1Gi")}, []string{"0", "1", "1", "0"}},
		{"a group", []*corev1.Pod{guaranteed("a", "10Gi"), guaranteed("b", "1Gi"), guaranteed("c", "1Gi")},
			[]string{"0-1", "0-1", "0-1"}},
		{"no group over what single nodes have", []*corev1.Pod{guaranteed("a", "1Gi"), guaranteed("b", "10Gi")},
			[]string{"0", "refused"}},
		{"too much", []*corev1.Pod{guaranteed("a", "14Gi")}, []string{"refused"}},
		{"huge pages from the same node",
			[]*corev1.Pod{guaranteed("a", "1Gi+1Gi"), guaranteed("b", "1Gi+1Gi"), guaranteed("c", "1Gi+2Mi")},
			[]string{"0", "1", "refused"}},
		{"init containers' memory is used again",
			[]*corev1.Pod{guaranteed("a", "init:4Gi", "4Gi", "2Gi"), guaranteed("b", "1Gi")}, []string{"0 0 0", "1"}},
		{"what an init container had more stays with the pod",
			[]*corev1.Pod{guaranteed("a", "init:6Gi", "4Gi"), guaranteed("b", "1Gi")}, []string{"0 0", "1"}},
	} {
		m := start(t, t.TempDir(), machine(8, 8), memory.Reserved{0: {corev1.ResourceMemory: gi}})
		all := &cm.Manager{Providers: []cm.Provider{m}}
		for i, pod := range c.pods {
			got := "refused"
			if err := all.Admit(t.Context(), pod); err == nil {
				got = nodes(t, m, pod)
			}
			if got != c.want[i] {
				t.Errorf("%s: pod %s is given %q, want %q", c.name, pod.Name, got, c.want[i])
			}
		}
	}
}

// TestOthers: containers of other pods get none of their own.
func TestOthers(t *testing.T) {
	t.Parallel()
	m := start(t, t.TempDir(), machine(8), nil)
	pod := guaranteed("a", "4Gi")
	pod.Status.QOSClass = corev1.PodQOSBurstable
	if err := (&cm.Manager{Providers: []cm.Provider{m}}).Admit(t.Context(),
		pod); err != nil || nodes(t, m, pod) != "" || m.MayResize(pod, runtime.Resources{}) != "" {
		t.Errorf("given %q, %v, %s", nodes(t, m, pod), err, m.MayResize(pod, runtime.Resources{}))
	}
	if m.MayResize(guaranteed("b", "1Gi"), runtime.Resources{}) == "" {
		t.Error("what is set aside may be resized")
	}
}

// TestHints: where each kind can be given, and how the topology manager puts them together.
func TestHints(t *testing.T) {
	t.Parallel()
	m := start(t, t.TempDir(), machine(8, 8, 8), nil)
	all := &cm.Manager{Providers: []cm.Provider{m}}
	if err := all.Admit(t.Context(), guaranteed("a", "6Gi")); err != nil {
		t.Fatal(err)
	}
	pod := guaranteed("b", "2Gi+1Gi")
	hints := m.Hints(pod, &pod.Spec.Containers[0])
	for _, kind := range []string{"memory", "hugepages-2Mi"} {
		want := []cm.Hint{{Nodes: cm.NodesOf(1), Preferred: true}, {Nodes: cm.NodesOf(2), Preferred: true},
			{Nodes: cm.NodesOf(1, 2)}}
		if !slices.Equal(hints[kind], want) {
			t.Errorf("%s: %+v, want %+v", kind, hints[kind], want)
		}
	}
	big := guaranteed("c", "10Gi")
	if got := m.PodHints(big)["memory"]; !slices.Equal(got, []cm.Hint{{Nodes: cm.NodesOf(1, 2), Preferred: true}}) {
		t.Errorf("a large pod: %+v", got)
	}
	two := guaranteed("d", "init:5Gi", "4Gi", "4Gi") // 8 GiB beside each other, of 7 that a node gives
	if got := m.PodHints(two)["memory"]; !slices.Equal(got, []cm.Hint{{Nodes: cm.NodesOf(1, 2), Preferred: true}}) {
		t.Errorf("a pod of two containers: %+v", got)
	}
	// Near to what is given of other kinds, as far as there is room; with more nodes if there is not.
	for near, want := range map[cm.Nodes]string{cm.NodesOf(2): "2", cm.NodesOf(0): "refused"} {
		pod := guaranteed(fmt.Sprint("near", near), "2Gi")
		got := "refused"
		if err := m.Allocate(t.Context(), pod, &pod.Spec.Containers[0], near); err == nil {
			got = nodes(t, m, pod)
		}
		if got != want {
			t.Errorf("near to %v: %s, want %s", near.IDs(), got, want)
		}
	}
	if kubeletconfig.NoneMemoryManagerPolicy != memory.None ||
		kubeletconfig.StaticMemoryManagerPolicy != memory.Static {
		t.Error("the policies have other names")
	}
}

// TestHeld: what agents are told.
func TestHeld(t *testing.T) {
	t.Parallel()
	m := start(t, t.TempDir(), machine(8), memory.Reserved{0: {corev1.ResourceMemory: gi}})
	all := &cm.Manager{Providers: []cm.Provider{m}}
	pod := guaranteed("a", "2Gi+512Mi")
	if err := all.Admit(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, b := range all.Held(pod, "c0").Memory {
		got["held "+b.MemoryType] = b.Size
		if len(b.Topology.Nodes) != 1 || b.Topology.Nodes[0].ID != 0 {
			t.Errorf("from %v", b.Topology)
		}
	}
	for _, b := range all.Holdings().Memory {
		got["all "+b.MemoryType] = b.Size
	}
	if want := map[string]uint64{"held memory": 2 * gi, "held hugepages-2Mi": gi / 2, "all memory": 6 * gi,
		"all hugepages-2Mi": gi}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRestart: another policy, other memory, or a file that is changed: the kubelet does not begin.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, dir, machine(8, 8), nil)
	pod := guaranteed("a", "10Gi")
	if err := (&cm.Manager{Providers: []cm.Provider{m}}).Admit(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := nodes(t, start(t, dir, machine(8, 8), nil), pod); got != "0-1" {
		t.Errorf("after a restart: %q", got)
	}
	file := filepath.Join(dir, "memory_manager_state")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"policyName":"Static"`, `"numaAffinity":[0,1],"type":"memory","size":10737418240`,
		`"0":{"numberOfAssignments":1,"memoryMap":{"hugepages-2Mi":{"total":1073741824,"systemReserved":0,"allocatable":1073741824,"reserved":0,"free":1073741824}`, `"cells":[0,1]`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the file has no %s: %s", want, data)
		}
	}
	for want, c := range map[string]struct {
		machine  cm.Machine
		reserved memory.Reserved
		policy   string
		data     string
	}{
		`configured policy "None" differs from state checkpoint policy "Static"`: {machine(8, 8), nil, memory.None,
			string(data)},
		"the expected machine state is different from the real one": {machine(8, 9), nil, memory.Static,
			string(data)},
		"other memory on NUMA node 1": {machine(8, 8),
			memory.Reserved{1: {corev1.ResourceMemory: 1 << 20}}, memory.Static, string(data)},
		"checkpoint is corrupted": {machine(8, 8), nil, memory.Static,
			strings.Replace(string(data), "10737418240", "10737418241", 1)},
		"there is no memory on NUMA node 7 to be reserved": {machine(8, 8),
			memory.Reserved{7: {corev1.ResourceMemory: 1}}, memory.Static, string(data)},
		"the reserved memory of NUMA node 0 is more than it has": {machine(8, 8),
			memory.Reserved{0: {corev1.ResourceMemory: 9 * gi}}, memory.Static, string(data)},
	} {
		if err := os.WriteFile(file, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := memory.New(memory.Config{Settings: memory.Settings{Policy: c.policy, Reserved: c.reserved},
			RootDir: dir, Machine: c.machine, Metrics: &counts{}, Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
