package cpu

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cmtest"
	"bonsai/pkg/kubelet/runtime"
)

// machine has two sockets, each a NUMA node of four cores with two threads; each pair of cores shares a cache. CPU n
// and n+8 are one core.
func machine() (m cm.Machine) {
	for id := range 16 {
		m.CPUs = append(m.CPUs, cm.CPU{ID: id, Core: id % 8, Cache: id % 8 / 2 * 2, Socket: id % 8 / 4,
			NUMA: id % 8 / 4})
	}
	return m
}

func set(t *testing.T, text string) cpuset.CPUSet {
	t.Helper()
	s, err := cpuset.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		available string
		n         int
		o         Options
		want      string
	}{
		"one thread":                            {"0-15", 1, Options{}, "0"},
		"a core":                                {"0-15", 2, Options{}, "0,8"},
		"the rest of a core before a whole one": {"0,1-7,9-15", 1, Options{}, "0"},
		"a core and a half":                     {"0-15", 3, Options{}, "0-1,8"},
		"a socket":                              {"0-15", 8, Options{}, "0-3,8-11"},
		"a socket that is whole":                {"1-15", 8, Options{}, "4-7,12-15"},
		"where less is free":                    {"2-15", 2, Options{}, "2,10"},
		"beyond a socket":                       {"1-15", 10, Options{}, "1,4-7,9,12-15"},
		"too many":                              {"0-3", 5, Options{}, "none"},
		"around a cache":                        {"0-5,7-13,15", 4, Options{alignByUncoreCache: true}, "4-5,12-13"},
		"over the nodes":                        {"1-7,9-15", 8, Options{distributeAcrossNUMA: true}, "4-7,12-15"},
		"over the nodes, each as many": {"1-6,9-14", 8, Options{distributeAcrossNUMA: true},
			"1-2,4,6,9-10,12,14"},
		"over the nodes, not possible": {"1-6,9-14", 9, Options{distributeAcrossNUMA: true}, "1-6,9,12-13"},
	} {
		got, ok := take(machine(), set(t, c.available), c.n, c.o)
		if c.want == "none" {
			if ok {
				t.Errorf("%s: %s", name, got)
			}
			continue
		}
		if !ok || got.Size() != c.n || !got.IsSubsetOf(set(t, c.available)) {
			t.Errorf("%s: %s, %v", name, got, ok)
		}
		if !strings.HasPrefix(name, "over the nodes, not") && got.String() != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

type uncounted struct{}

func (uncounted) CPUsPinned(error) {}
func (uncounted) CPUs(int, int)    {}

// node is the runtime of the test, and what it was told.
type node struct {
	pods []*corev1.Pod
	told []string
	fail error
}

func (n *node) PodStatus(_ context.Context, uid types.UID) (*runtime.PodStatus, error) {
	rt := &runtime.PodStatus{}
	for _, p := range n.pods {
		if p.UID == uid {
			for _, c := range p.Spec.Containers {
				rt.Containers = append(rt.Containers,
					runtime.Container{Name: c.Name, ID: runtime.ContainerID{ID: string(uid) + "/" + c.Name},
						State: runtime.StateRunning})
			}
		}
	}
	return rt, nil
}

func (n *node) SetCPUs(_ context.Context, id, cpus string) error {
	if n.fail != nil {
		return n.fail
	}
	n.told = append(n.told, id+" "+cpus)
	return nil
}

func (n *node) took() string { s := strings.Join(n.told, ", "); n.told = nil; return s }

func start(t *testing.T, dir string, n *node, o Options) *Manager {
	t.Helper()
	m, err := New(Config{Settings: Settings{Policy: Static, Options: o, ReservedCount: 2, Period: time.Second},
		RootDir: dir, Machine: machine(), Runtime: n,
		Pods: func() []*corev1.Pod { return n.pods }, Metrics: uncounted{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// podOf has containers c0, c1, … that request that much CPU, and are limited to it.
func podOf(uid types.UID, cpus ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid, Name: string(uid)},
		Status: corev1.PodStatus{QOSClass: corev1.PodQOSGuaranteed}}
	for i, q := range cpus {
		p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprintf("c%d", i), q))
	}
	return p
}

func container(name, q string) corev1.Container {
	l := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q),
		corev1.ResourceMemory: resource.MustParse("1Mi")}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: l, Limits: l}}
}

func admit(t *testing.T, m *Manager, pod *corev1.Pod, near cm.Topology) string {
	t.Helper()
	near.Nodes = machine().Nodes()
	err := (&cm.Manager{Providers: []cm.Provider{m}, Topology: near, Metrics: asked{}}).Admit(t.Context(), pod)
	if err == nil {
		return ""
	}
	var why *cm.Refusal
	if !errors.As(err, &why) {
		t.Fatal(err)
	}
	return why.Reason + ": " + why.Message
}

type asked struct{}

func (asked) TopologyAdmitted(time.Duration, bool) {}

func TestContract(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmtest.Run(t, func() cm.Provider { return start(t, dir, &node{}, Options{}) }, podOf("u", "2"))
}

// TestNoQuota: a container with CPUs for itself has no quota, nor has its pod; others keep
// theirs. It holds after a restart.
func TestNoQuota(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, dir, &node{}, Options{})
	own, shared := podOf("own", "2", "1500m"), podOf("shared", "1500m")
	for _, pod := range []*corev1.Pod{own, shared} {
		if why := admit(t, m, pod, cm.Topology{}); why != "" {
			t.Fatal(why)
		}
	}
	m = start(t, dir, &node{}, Options{})
	for pod, want := range map[*corev1.Pod][]bool{own: {true, false}, shared: {false}} {
		if got := m.NoQuota(pod); got != want[0] {
			t.Errorf("pod %s: no quota %t", pod.Name, got)
		}
		for i := range want {
			var o runtime.ContainerOptions
			err := m.Container(pod, &pod.Spec.Containers[i], &o)
			if err != nil || o.NoCPUQuota != want[i] {
				t.Errorf("pod %s, container %d: %+v, %v", pod.Name, i, o, err)
			}
		}
	}
}

// Whole numbers of CPUs of Guaranteed pods are theirs alone; the others share the rest, reserved ones among them, and
// follow as it changes.
func TestPools(t *testing.T) {
	t.Parallel()
	n := &node{}
	m := start(t, t.TempDir(), n, Options{})
	burstable := podOf("b", "1")
	burstable.Status.QOSClass = corev1.PodQOSBurstable
	n.pods = []*corev1.Pod{burstable}
	has := m.reconcile(t.Context(), nil)
	if got := n.took(); got != "b/c0 0-15" {
		t.Error(got)
	}
	pod := podOf("g", "2", "500m")
	if why := admit(t, m, pod, cm.Topology{}); why != "" {
		t.Fatal(why)
	}
	n.pods = append(n.pods, pod)
	n.fail = errors.New("busy")
	has = m.reconcile(t.Context(), has)
	n.fail = nil
	has = m.reconcile(t.Context(), has)
	if got := n.took(); got != "b/c0 0,2-8,10-15, g/c0 1,9, g/c1 0,2-8,10-15" {
		t.Error(got)
	}
	var o runtime.ContainerOptions
	if err := m.Container(pod, &pod.Spec.Containers[0], &o); err != nil || o.CPUs != "1,9" {
		t.Error(o.CPUs, err)
	}
	if got := m.Held(pod)["c0"].CpuIds; len(got) != 2 || len(m.Held(pod)) != 1 || len(m.Holdings().CpuIds) != 14 {
		t.Error(got)
	}
	m.Release("g")
	n.pods = n.pods[:1]
	if m.reconcile(t.Context(), has); n.took() != "b/c0 0-15" {
		t.Error("what has ended is not shared again")
	}
	if why := m.MayResize(pod,
		runtime.Resources{}); why != "Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy" ||
		m.MayResize(burstable, runtime.Resources{}) != "" {
		t.Error(why)
	}
	if got, want := admit(t, m, podOf("huge", "15"), cm.Topology{}),
		"UnexpectedAdmissionError: Allocate failed due to not enough cpus available to satisfy request: requested=15, available=14, which is unexpected"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	m := start(t, t.TempDir(), &node{}, Options{fullPCPUsOnly: true, strictReservation: true})
	if got := admit(t, m, podOf("odd", "3"),
		cm.Topology{}); got != "SMTAlignmentError: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2" {
		t.Error(got)
	}
	if got := admit(t, m, podOf("huge", "16"),
		cm.Topology{}); got != "SMTAlignmentError: SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 14, requested CPUs = 16, CPUs per core = 2" {
		t.Error(got)
	}
	if got := m.cpus("other", "c"); got != "1-7,9-15" {
		t.Error("who shares runs on reserved CPUs:", got)
	}
}

// With a topology policy the CPUs are of one NUMA node where they are to be, and a pod is refused that cannot have them
// so.
func TestTopology(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"best-effort": "",
		"restricted":       "TopologyAffinityError: Resources cannot be allocated with Topology locality",
		"single-numa-node": "TopologyAffinityError: Resources cannot be allocated with Topology locality"} {
		m := start(t, t.TempDir(), &node{}, Options{})
		if why := admit(t, m, podOf("a", "6"),
			cm.Topology{Policy: policy}); why != "" || m.given["a"]["c0"].String() != "1-3,9-11" {
			t.Error(policy, why, m.given)
		}
		if why := admit(t, m, podOf("b", "3"),
			cm.Topology{Policy: policy}); why != "" || !m.given["b"]["c0"].IsSubsetOf(set(t, "4-7,12-15")) {
			t.Error(policy, why, m.given)
		}
		if why := admit(t, m, podOf("c", "6"),
			cm.Topology{Policy: policy, PodScope: true}); why != want && policy != "best-effort" {
			t.Error(policy, why)
		}
	}
	m := start(t, t.TempDir(), &node{}, Options{})
	if why := admit(t, m, podOf("p", "4", "4"),
		cm.Topology{Policy: "single-numa-node", PodScope: true}); why != "" ||
		!m.given["p"]["c0"].Union(m.given["p"]["c1"]).Equals(set(t, "4-7,12-15")) {
		t.Error("the containers of a pod are on one node:", why, m.given)
	}
}

// What pods have outlives the kubelet, in the file that others read too; it is not believed for another policy or
// machine.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, dir, &node{}, Options{})
	if why := admit(t, m, podOf("u", "2"), cm.Topology{}); why != "" {
		t.Fatal(why)
	}
	if again := start(t, dir, &node{}, Options{}); again.given["u"]["c0"].String() != "1,9" {
		t.Error(again.given)
	}
	path := filepath.Join(dir, "cpu_manager_state")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	none, smaller := m.cfg, m.cfg
	none.Policy, smaller.Machine.CPUs = None, m.cfg.Machine.CPUs[:15]
	for want, c := range map[string]struct {
		cfg  Config
		data string
	}{
		"differs from state checkpoint policy": {none, string(data)},
		"doesn't match with CPUs in state":     {smaller, string(data)},
		"is corrupted":                         {m.cfg, strings.Replace(string(data), "1,9", "2,9", 1)},
	} {
		if err := os.WriteFile(path, []byte(c.data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	// What Kubernetes 1.36.3 writes with the policy none.
	empty := checkpoint{PolicyName: None, Entries: map[string]map[string]string{}}
	empty.Checksum = empty.sum()
	if text, err := json.Marshal(empty); err != nil ||
		string(text) != `{"policyName":"none","defaultCpuSet":"","checksum":1353318690}` {
		t.Errorf("%s, %v", text, err)
	}
}

// Through random histories of pods and restarts no CPU is given twice, none that is reserved, and all are known.
func TestHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		o := Options{fullPCPUsOnly: r.IntN(2) == 0, strictReservation: r.IntN(2) == 0,
			alignByUncoreCache: r.IntN(2) == 0}
		o.distributeAcrossNUMA = !o.alignByUncoreCache && r.IntN(2) == 0
		near := cm.Topology{Policy: []string{"none", "best-effort", "restricted", "single-numa-node"}[r.IntN(4)],
			PodScope: r.IntN(2) == 0}
		dir := t.TempDir()
		m := start(t, dir, &node{}, o)
		var live []types.UID
		for step := range 60 {
			switch r.IntN(5) {
			case 0, 1, 2:
				uid := types.UID(fmt.Sprint(step))
				pod := podOf(uid, fmt.Sprint(1+r.IntN(4)), []string{"1", "2", "500m"}[r.IntN(3)])
				if r.IntN(2) == 0 {
					pod.Spec.InitContainers = []corev1.Container{container("init", fmt.Sprint(1+r.IntN(5)))}
				}
				if admit(t, m, pod, near) == "" {
					live = append(live, uid)
				} else if m.given[uid] != nil {
					t.Fatalf("seed %d: a pod that was refused has %v", seed, m.given[uid])
				}
			case 3:
				if len(live) > 0 {
					i := r.IntN(len(live))
					m.Release(live[i])
					live = append(live[:i], live[i+1:]...)
				}
			case 4:
				before := m.given
				if m = start(t, dir, &node{}, o); fmt.Sprint(m.given) != fmt.Sprint(before) {
					t.Fatalf("seed %d: before a restart %v, after it %v", seed, before, m.given)
				}
			}
			owner := map[int]string{}
			for uid, containers := range m.given {
				for name, s := range containers {
					for _, id := range s.List() {
						who := string(uid)
						if name != "init" {
							who += "/" + name
						}
						if had, taken := owner[id]; taken && had != who && !strings.HasPrefix(had, string(uid)) {
							t.Fatalf("seed %d step %d: CPU %d is %s's and %s's", seed, step, id, had, who)
						} else if taken && name != "init" && strings.Contains(had, "/") {
							t.Fatalf("seed %d step %d: CPU %d is %s's and %s's", seed, step, id, had, who)
						}
						if owner[id] = who; m.reserved.Contains(id) || m.shared().Contains(id) {
							t.Fatalf("seed %d step %d: CPU %d of %s is reserved or shared", seed, step, id, who)
						}
					}
				}
			}
		}
	}
}
