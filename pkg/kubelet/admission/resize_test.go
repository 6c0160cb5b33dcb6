package admission

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// saved is a Checkpoint that outlives an Admitter, as JSON.
type saved map[types.UID]string

func (s saved) Load(uid types.UID) (a runtime.Allocation, ok bool, err error) {
	text, ok := s[uid]
	if ok {
		err = json.Unmarshal([]byte(text), &a)
	}
	return a, ok, err
}

func (s saved) Save(uid types.UID, a runtime.Allocation) error {
	text, err := json.Marshal(a)
	s[uid] = string(text)
	return err
}

func (s saved) Remove(uid types.UID) error  { delete(s, uid); return nil }
func (s saved) Saved() ([]types.UID, error) { return slices.Collect(maps.Keys(s)), nil }

// resized is the pod with that request of CPU, a generation later.
func resized(p *corev1.Pod, cpu string) *corev1.Pod {
	p = p.DeepCopy()
	p.Generation++
	p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	return p
}

func cpuOf(r corev1.ResourceRequirements) string { return r.Requests.Cpu().String() }

// has checks what the node gives the pod, and why it gives no other.
func has(t *testing.T, a *Admitter, p *corev1.Pod, cpu, reason, message string) runtime.Resizing {
	t.Helper()
	given, r := a.Allocation(p)
	if got := given.Spec.Containers[0].Resources.Requests.Cpu().String(); got != cpu || r.Reason != reason ||
		r.Message != message {
		t.Errorf("pod %s has %s %q %q, want %s %q %q", p.UID, got, r.Reason, r.Message, cpu, reason, message)
	}
	return r
}

func TestResizeIsGrantedDeferredOrInfeasible(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	a.Open()
	p, other := pod("p", "400m", 1), pod("o", "500m", 2)
	expect(t, a, p, Admitted, "")
	expect(t, a, other, Admitted, "")
	for _, c := range []struct{ asks, has, reason, message string }{
		{"500m", "500m", "", ""},
		{"501m", "500m", "Deferred",
			"Node didn't have enough resource: cpu, requested: 501, used: 500, capacity: 1000"},
		{"2", "500m", "Infeasible", "Node didn't have enough capacity: cpu, requested: 2000, capacity: 1000"},
		{"500m", "500m", "", ""}, // taken back
		{"100m", "100m", "", ""},
	} {
		p = resized(p, c.asks)
		a.Update(p)
		has(t, a, p, c.has, c.reason, c.message)
	}
	expect(t, a, pod("third", "401m", 3), Rejected, "OutOfcpu") // beside what the others have
	expect(t, a, pod("fourth", "400m", 4), Admitted, "")
}

// A pod that was taken with one spec and asked for another while it waited has the newest.
func TestResizeBeforeAdmission(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	p := pod("p", "400m", 1)
	a.Add(p)
	p = resized(p, "700m")
	a.Update(p)
	a.Open()
	expect(t, a, p, Admitted, "")
	if r := has(t, a, p, "700m", "", ""); r.PodActuates {
		t.Error("there is nothing to actuate")
	}
}

func TestDeferredResizesAreRetriedInOrder(t *testing.T) {
	t.Parallel()
	var woken []types.UID
	a := admitter(&woken)
	a.Open()
	pods := map[types.UID]*corev1.Pod{}
	for i, uid := range []types.UID{"leaves", "first", "later", "preferred", "guaranteed", "infeasible"} {
		pods[uid] = pod(uid, "100m", int64(i))
	}
	prio := int32(7)
	pods["preferred"].Spec.Priority, pods["leaves"] = &prio, pod("leaves", "500m", 0)
	pods["guaranteed"].Status.QOSClass = corev1.PodQOSGuaranteed
	for _, p := range pods {
		expect(t, a, p, Admitted, "")
	}
	ask := func(uid types.UID, cpu string) {
		pods[uid] = resized(pods[uid], cpu)
		a.Update(pods[uid])
	}
	ask("infeasible", "9")
	ask("first", "350m")
	ask("later", "250m")
	ask("guaranteed", "250m")
	ask("preferred", "900m") // does not fit when one leaves, and keeps nobody from it
	woken = nil
	a.Release("leaves") // leaves 500m: 150 for the guaranteed one, 250 for the first, 100 are left
	if !slices.Equal(woken, []types.UID{"guaranteed", "first"}) {
		t.Errorf("woken: %v", woken)
	}
	woken = nil
	ask("guaranteed", "200m")
	if !slices.Equal(woken, []types.UID{"later"}) {
		t.Errorf("woken when another needs less: %v", woken)
	}
	if _, r := a.Allocation(pods["infeasible"]); r.Reason != "Infeasible" {
		t.Errorf("%+v", r)
	}
}

func TestResizeOutlivesTheKubelet(t *testing.T) {
	t.Parallel()
	kept := saved{"gone": "{}"}
	start := func(pods ...*corev1.Pod) *Admitter {
		a := admitter(nil)
		a.cfg.Checkpoint = kept
		for _, p := range pods {
			a.Ran(p.UID)
			a.Add(p)
		}
		a.Open()
		return a
	}
	a := start()
	p, other := pod("p", "300m", 1), pod("o", "500m", 2)
	expect(t, a, p, Admitted, "")
	expect(t, a, other, Admitted, "")
	p = resized(p, "400m")
	a.Update(p)
	old, grown := p.Spec.Containers[0].Resources, resized(p, "600m")
	for round, asks := range []*corev1.Pod{p, grown} { // asked for while it did not run
		a = start(other, asks)
		r := has(t, a, asks, "400m", []string{"", "Deferred"}[round],
			[]string{"", "Node didn't have enough resource: cpu, requested: 600, used: 500, capacity: 1000"}[round])
		if was := cpuOf(r.Actuated[""]); !r.PodActuates || was != "300m" || r.Generation != p.Generation {
			t.Errorf("the resize under way is forgotten: %+v", r)
		}
	}
	a.Actuated("p", "", old)
	a.PodActuated("p", p.Generation)
	a.Release("o")
	a = start(grown)
	if r := has(t, a, grown, "600m", "", ""); cpuOf(r.Actuated[""]) != "400m" {
		t.Errorf("%+v", r)
	}
	if len(kept) != 1 {
		t.Errorf("kept: %v", kept)
	}
}

// A container without a limit of its own is to get its pod's, when that changes; what the pod had as a whole is known
// until it has the new one.
func TestResizeOfThePodAsAWhole(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	a.Open()
	limited := func(p *corev1.Pod, memory string) *corev1.Pod {
		p = p.DeepCopy()
		p.Generation++
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: list(map[corev1.ResourceName]string{"memory": memory})}
		return p
	}
	first := limited(pod("p", "100m", 1), "1Gi")
	expect(t, a, first, Admitted, "")
	second := limited(first, "2Gi")
	a.Update(second)
	third := limited(second, "3Gi")
	a.Update(third)
	_, r := a.Allocation(third)
	had, gets := r.Actuated[""], r.Effective("")
	if r.PodActuated.Limits.Memory().String() != "1Gi" || had.Limits.Memory().String() != "1Gi" ||
		gets.Limits.Memory().String() != "3Gi" {
		t.Errorf("%+v", r)
	}
	a.Actuated("p", "", r.Effective(""))
	a.PodActuated("p", third.Generation)
	if _, r := a.Allocation(third); len(r.Actuated) != 0 || r.PodActuates || r.PodActuated != nil {
		t.Errorf("%+v", r)
	}
}

// What was done for an older resize does not count as the newer one.
func TestActuationOfAnOlderResize(t *testing.T) {
	t.Parallel()
	a := admitter(nil)
	a.Open()
	p := pod("p", "100m", 1)
	expect(t, a, p, Admitted, "")
	first := resized(p, "200m")
	a.Update(first)
	second := resized(first, "300m")
	a.Update(second)
	a.Actuated("p", "", first.Spec.Containers[0].Resources)
	a.PodActuated("p", first.Generation)
	if r := has(t, a, second, "300m", "", ""); cpuOf(r.Actuated[""]) != "200m" || !r.PodActuates {
		t.Errorf("%+v", r)
	}
	a.Actuated("p", "", second.Spec.Containers[0].Resources)
	a.PodActuated("p", second.Generation)
	if r := has(t, a, second, "300m", "", ""); len(r.Actuated) != 0 || r.PodActuates {
		t.Errorf("%+v", r)
	}
	third := resized(second, "400m")
	a.Update(third)
	back := resized(third, "300m")
	a.Update(back)
	if r := has(t, a, back, "300m", "", ""); len(r.Actuated) != 0 {
		t.Errorf("taken back before it was done: %+v", r)
	}
}

// Whatever happens, pods together never have more than the node, a pod has what some spec of it asked for, the newest
// unless that is refused for a reason that holds, and a restart of the kubelet changes nothing of it.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		kept, a := saved{}, admitter(nil)
		a.cfg.Checkpoint = kept
		a.Open()
		pods, allowed := map[types.UID]*corev1.Pod{}, map[types.UID][]string{}
		for step := range 60 {
			uid := types.UID(fmt.Sprint(r.IntN(6)))
			p, amount := pods[uid], fmt.Sprintf("%dm", 50*(1+r.IntN(22)))
			switch what := r.IntN(10); {
			case p == nil:
				p = pod(uid, amount, int64(step))
				prio := int32(r.IntN(2))
				p.Spec.Priority, p.Generation = &prio, 1
				if verdict, _ := a.Admit(p); verdict == Admitted {
					pods[uid], allowed[uid] = p, []string{p.Spec.Containers[0].Resources.Requests.Cpu().String()}
				} else {
					a.Release(uid)
				}
			case what == 0:
				a.Release(uid)
				delete(pods, uid)
			case what == 1:
				a = admitter(nil)
				a.cfg.Checkpoint = kept
				for _, uid := range slices.Sorted(maps.Keys(pods)) {
					a.Ran(uid)
					a.Add(pods[uid])
				}
				a.Open()
			case what == 2:
				given, _ := a.Allocation(p)
				a.Actuated(uid, "", given.Spec.Containers[0].Resources)
			default:
				pods[uid] = resized(p, amount)
				a.Update(pods[uid])
				allowed[uid] = append(allowed[uid], pods[uid].Spec.Containers[0].Resources.Requests.Cpu().String())
			}
			check(t, fmt.Sprintf("seed %d, step %d", seed, step), a, pods, allowed)
		}
	}
}

func check(t *testing.T, where string, a *Admitter, pods map[types.UID]*corev1.Pod, allowed map[types.UID][]string) {
	t.Helper()
	sum, free := int64(0), int64(1000)
	for uid, p := range pods {
		given, r := a.Allocation(p)
		q := given.Spec.Containers[0].Resources.Requests.Cpu()
		sum += q.MilliValue()
		if !slices.Contains(allowed[uid], q.String()) {
			t.Fatalf("%s: pod %s has %s, which nobody asked for", where, uid, q)
		}
		if newest := q.Cmp(*p.Spec.Containers[0].Resources.Requests.Cpu()) == 0; newest != (r.Reason == "") ||
			newest && r.Generation > p.Generation {
			t.Fatalf("%s: pod %s has %s, refused: %q", where, uid, q, r.Reason)
		}
	}
	if free -= sum; free < 0 {
		t.Fatalf("%s: pods have %dm", where, sum)
	}
	for uid, p := range pods {
		given, r := a.Allocation(p)
		asks, has := p.Spec.Containers[0].Resources.Requests.Cpu().MilliValue(),
			given.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		if (r.Reason == "Infeasible") != (asks > 1000) || r.Reason == "Deferred" && asks-has <= free {
			t.Fatalf("%s: pod %s asks for %dm, has %dm, %dm are free: %s", where, uid, asks, has, free, r.Reason)
		}
	}
}
