package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// of is a pod of that class that requests "cpu/memory", both plain numbers of the node's 1000m and 1000.
func of(uid string, class corev1.PodQOSClass, amount string) *corev1.Pod {
	cpu, memory, _ := strings.Cut(amount, "/")
	p := pod(types.UID(uid), cpu+"m", 1)
	p.Spec.Containers[0].Resources.Requests = list(map[corev1.ResourceName]string{"cpu": cpu + "m", "memory": memory})
	p.Status.QOSClass = class
	return p
}

func priority(p *corev1.Pod, n int32) *corev1.Pod { p.Spec.Priority = &n; return p }

// The smallest harm: as few Guaranteed pods as possible lose their place, then as few Burstable ones, then BestEffort
// ones; of one class, those that come nearest to what is missing.
//
// https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
func TestWhoLosesAPlace(t *testing.T) {
	t.Parallel()
	const best, burst, guaranteed = corev1.PodQOSBestEffort, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed
	const critical = 2_000_000_000
	for name, c := range map[string]struct {
		there   []*corev1.Pod
		pod     *corev1.Pod
		victims string
		message string
	}{
		"it fits": {[]*corev1.Pod{of("a", burst, "500/0")}, static(of("p", burst, "500/0")), "", ""},
		"one that is enough": {[]*corev1.Pod{of("a", burst, "300/0"), of("b", burst, "300/0"), of("c", burst, "400/0")},
			static(of("p", burst, "400/0")), "c", ""},
		"the least that is enough": {[]*corev1.Pod{of("a", burst, "600/0"), of("b", burst, "400/0")},
			static(of("p", burst, "300/0")), "b", ""},
		"Burstable before Guaranteed": {
			[]*corev1.Pod{of("a", guaranteed, "500/0"), of("b", burst, "250/0"), of("c", burst, "250/0")},
			static(of("p", burst, "500/0")), "b c", ""},
		"Guaranteed where nothing else helps": {
			[]*corev1.Pod{of("a", guaranteed, "400/0"), of("b", guaranteed, "500/0"), of("c", burst, "100/0")},
			static(of("p", burst, "500/0")), "a c", ""},
		"two resources": {[]*corev1.Pod{of("a", burst, "600/100"), of("b", burst, "100/600"),
			of("c", burst, "300/300")},
			static(of("p", burst, "500/500")), "a b", ""},
		"nobody superfluous": {[]*corev1.Pod{of("x", burst, "60/60"), of("y", burst, "100/0"), of("z", burst, "0/100"),
			static(of("s", burst, "840/840"))},
			static(of("p", burst, "100/100")), "y z", ""},
		"by priority": {[]*corev1.Pod{of("a", burst, "900/0")}, priority(of("p", burst, "500/0"), critical), "a", ""},
		"a critical pod for a more critical one": {[]*corev1.Pod{priority(of("a", burst, "900/0"), critical)},
			priority(of("p", burst, "500/0"), critical+1000), "a", ""},
		"not a critical pod for its equal": {
			[]*corev1.Pod{priority(of("a", burst, "900/100"), critical), of("b", burst, "50/0")},
			priority(of("p", burst, "500/950"), critical), "",
			"Unexpected error while attempting to recover from admission failure: preemption: " +
				"error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 450), (res: memory, q: 50), ]"},
		"not by a pod that is not critical": {[]*corev1.Pod{of("a", best, "900/0")},
			priority(of("p", burst, "500/0"), critical-1), "",
			"Node didn't have enough resource: cpu, requested: 500, used: 900, capacity: 1000"},
		"not in vain": {[]*corev1.Pod{of("a", best, "900/0")}, func() *corev1.Pod {
			p := static(of("p", burst, "500/0"))
			p.Spec.NodeSelector = map[string]string{"disk": "hdd"}
			return p
		}(), "", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := admitter(nil)
			a.cfg.Node = func() *corev1.Node { return &corev1.Node{} }
			a.cfg.Allocatable = func() corev1.ResourceList {
				return list(map[corev1.ResourceName]string{"cpu": "1", "memory": "1000", "pods": "10"})
			}
			var told []string
			a.cfg.Preempted = func(uid types.UID, lacked corev1.ResourceName) {
				if lacked != corev1.ResourceCPU {
					t.Errorf("pod %s: lacked %s", uid, lacked)
				}
				told = append(told, string(uid))
			}
			a.Open()
			for _, p := range c.there {
				expect(t, a, p, Admitted, "")
			}
			verdict, why := a.Admit(c.pod)
			slices.Sort(told)
			if got := strings.Join(told, " "); got != c.victims {
				t.Errorf("victims %q, want %q", got, c.victims)
			}
			if why == nil {
				why = &Rejection{}
			}
			if why.Message != c.message || (verdict == Rejected) != (c.message != "") ||
				(verdict == Waiting) != (c.victims != "") {
				t.Errorf("verdict %v: %+v", verdict, why)
			}
			for _, p := range c.there {
				want, reason := Admitted, ""
				if slices.Contains(told, string(p.UID)) {
					want, reason = Preempted, "Preempting"
				}
				expect(t, a, p, want, reason)
			}
		})
	}
}

// The critical pod has its place at once, so nobody else gets what becomes free, but runs only when the others have
// ended.
func TestAPlaceIsWaitedFor(t *testing.T) {
	t.Parallel()
	var woken []types.UID
	a := admitter(&woken)
	a.Open()
	for _, uid := range []types.UID{"a", "b"} {
		expect(t, a, pod(uid, "400m", 1), Admitted, "")
	}
	woken = nil
	first, second := static(pod("first", "900m", 0)), static(pod("second", "100m", 0))
	expect(t, a, first, Waiting, "")
	expect(t, a, second, Waiting, "") // it fits, but only when they have gone
	a.Release("a")
	expect(t, a, pod("new", "100m", 2), Rejected, "OutOfcpu")
	expect(t, a, first, Waiting, "")
	if len(woken) != 0 {
		t.Errorf("woken before its time: %v", woken)
	}
	a.Release("b")
	if slices.Sort(woken); !slices.Equal(woken, []types.UID{"first", "second"}) {
		t.Errorf("woken: %v", woken)
	}
	expect(t, a, first, Admitted, "")
	expect(t, a, second, Admitted, "")
}

// Many critical pods at once: each victim is told once, and the places are never given twice.
func TestManyCriticalAtOnce(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	var mu sync.Mutex
	told := map[types.UID]int{}
	a.cfg.Preempted = func(uid types.UID, _ corev1.ResourceName) {
		mu.Lock()
		told[uid]++
		mu.Unlock()
		a.Release(uid) // it ends
	}
	a.Open()
	for i := range 5 {
		expect(t, a, pod(types.UID(fmt.Sprint("low", i)), "200m", 1), Admitted, "")
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { a.Admit(priority(pod(types.UID(fmt.Sprint("critical", i)), "200m", 2), 2_000_000_000)) })
	}
	wg.Wait()
	if len(told) != 5 || slices.Max(slices.Collect(maps.Values(told))) != 1 {
		t.Errorf("told: %v", told)
	}
	admitted := 0
	for i := range 20 {
		if verdict, _ := a.Admit(
			priority(pod(types.UID(fmt.Sprint("critical", i)), "200m", 2), 2_000_000_000)); verdict == Admitted {
			admitted++
		}
	}
	if admitted != 5 {
		t.Errorf("%d were admitted, there is room for 5", admitted)
	}
}
