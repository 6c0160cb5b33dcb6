package preemption

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/profile"
)

var start = time.Unix(1_000_000, 0)

// pod asks for cpu and runs since minute minutes after start; a minute of -1: it does not run yet.
func pod(name string, priority int32, cpu string, minute int) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
	p.Spec.SchedulerName, p.Spec.Priority = "s", &priority
	p.Spec.Containers = []corev1.Container{
		{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}
	if minute >= 0 {
		p.Status.StartTime = new(metav1.NewTime(start.Add(time.Duration(minute) * time.Minute)))
	}
	return model.NewPodInfo(p)
}

func node(name, cpu string, pods ...*model.PodInfo) *model.NodeInfo {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	return model.NewNodeInfo(n, pods...)
}

// room is the one filter of the test profile: CPU.
type room struct{}

func (room) Name() string                                         { return "room" }
func (room) Less(*framework.QueuedPod, *framework.QueuedPod) bool { return false }
func (room) Bind(context.Context, *framework.CycleState, *model.PodInfo, string) *framework.Status {
	return nil
}

func (room) Filter(_ *framework.CycleState, pod *model.PodInfo, n *model.NodeInfo) *framework.Status {
	if cpuOf(pod) > n.Allocatable.MilliCPU {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "too big")
	}
	used := cpuOf(pod)
	for _, p := range n.Pods {
		used += cpuOf(p)
	}
	if used > n.Allocatable.MilliCPU {
		return framework.NewStatus(framework.Unschedulable, "no room")
	}
	return nil
}

func cpuOf(p *model.PodInfo) int64 {
	return p.Pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// api records what is asked of it.
type api struct {
	mu     sync.Mutex
	calls  []string
	refuse error
	block  chan struct{} // evictions wait for its end
	// searches and chosen are what was counted: searches for victims, and how many were chosen each time.
	searches int
	chosen   []int
}

func (a *api) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func (a *api) Budgets() []*policyv1.PodDisruptionBudget { return nil }

func (a *api) Preempt(_ context.Context, p *corev1.Pod, c *corev1.PodCondition) error {
	if a.block != nil {
		<-a.block
	}
	a.note(fmt.Sprint("preempt ", p.Name, " ", c.LastTransitionTime.Unix() == start.Unix()))
	return a.refuse
}

func (a *api) Put(_ context.Context, p *corev1.Pod, _ *corev1.PodCondition, nominated *string) {
	a.note(fmt.Sprintf("nominate %s %q", p.Name, *nominated))
}

func (a *api) Event(p *corev1.Pod, _, _, reason, _, note string) {
	a.note("event " + p.Name + " " + reason + " " + note)
}

func (a *api) Preempting()   { a.searches++ }
func (a *api) Victims(n int) { a.chosen = append(a.chosen, n) }

func (a *api) Ungate(pod types.UID) { a.note(fmt.Sprint("ungate ", pod)) }
func (a *api) Retry(pod types.UID)  { a.note(fmt.Sprint("retry ", pod)) }

// trial is a search of a plug-in by a profile with one filter.
type trial struct {
	search
	runs *profile.Profile
}

func plugin(t testing.TB, extenders ...framework.Extender) (trial, *api) {
	t.Helper()
	prof, err := profile.New("s", []profile.Enabled{{Plugin: room{}}}, extenders...)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{}
	p := &Plugin{
		API: a, Budgets: a, Statuses: a, Recorder: a, Nominator: model.NewNominator(), Now: func() time.Time {
			return start
		}, Log: slog.New(slog.DiscardHandler), Metrics: a,
		Start: func(int) int { return 0 },
	}
	return trial{search{p, prof.Handle(a)}, prof}, a
}

// refused runs the filter over all nodes, as a scheduling cycle would before it calls PostFilter.
func refused(p trial, pod *model.PodInfo, nodes ...*model.NodeInfo) *framework.Diagnosis {
	d := framework.NewDiagnosis(model.NewSnapshot(nodes...))
	for _, n := range nodes {
		d.Reject(n, p.runs.RunFilter(framework.NewCycleState(), pod, n))
	}
	return d
}

// TestPick has each documented criterion once, with the ones after it speaking for the other node.
func TestPick(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		violations, against int
		hurtsLess, other    []*model.PodInfo // by importance
	}{
		{"fewest broken budgets", 0, 1, list(pod("a", 9, "1", 0), pod("b", 9, "1", 0)), list(pod("c", 1, "1", 5))},
		{"least important first victim", 0, 0, list(pod("a", 4, "1", 0), pod("b", 4, "1", 0)),
			list(pod("c", 5, "1", 5))},
		{"smallest sum", 0, 0, list(pod("a", 5, "1", 0), pod("b", 1, "1", 0)),
			list(pod("c", 5, "1", 5), pod("d", 2, "1", 5))},
		{"negative priorities still add up", 0, 0, list(pod("a", -5, "1", 0)),
			list(pod("c", -5, "1", 5), pod("d", -6, "1", 5))},
		{"latest start of the most important", 0, 0, list(pod("a", 5, "1", 3), pod("b", 1, "1", 0)),
			list(pod("c", 5, "1", 2), pod("d", 1, "1", 9))},
		{"not running yet is latest", 0, 0, list(pod("a", 5, "1", -1)), list(pod("c", 5, "1", 9))},
		{"else the first", 0, 0, list(pod("a", 5, "1", 3)), list(pod("c", 5, "1", 3))},
	} {
		better, worse := &candidate{"better", c.hurtsLess, c.violations}, &candidate{"worse", c.other, c.against}
		if got := pick([]*candidate{better, worse}); got != better {
			t.Errorf("%s: picks the other", c.name)
		}
		if got := pick([]*candidate{worse, better}); got != better && c.name != "else the first" {
			t.Errorf("%s: picks the other when that comes first", c.name)
		}
	}
	few := &candidate{"few", list(pod("a", 2147483647, "1", 0), pod("b", -2147483648, "1", 0)), 0}
	many := &candidate{"many",
		list(pod("c", 2147483647, "1", 9), pod("d", -2147483648, "1", 9), pod("e", -2147483648, "1", 9)), 0}
	if got := pick([]*candidate{many, few}); got != few {
		t.Error("equal sums: not the fewest victims")
	}
}

func list(pods ...*model.PodInfo) []*model.PodInfo { return pods }

// TestVictims: as few as possible, the most important are spared first.
func TestVictims(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cpu  string
		pods []*model.PodInfo
		want string // victims, or why there are none
	}{
		{"one is enough", "1", list(pod("a", 1, "1", 0), pod("b", 2, "1", 0), pod("c", 3, "1", 0), pod("d", 4, "1", 0)),
			"a"},
		{"the younger of two equals", "1", list(pod("a", 1, "1", 5), pod("b", 1, "3", 9)), "b"},
		{"the more important is spared, though two go for it", "2",
			list(pod("big", 3, "2", 0), pod("x", 1, "1", 0), pod("y", 2, "1", 0)), "y x"},
		{"the free room counts", "3", list(pod("a", 1, "1", 0), pod("b", 2, "1", 0)), "a"},
		{"equals stay", "2", list(pod("equal", 10, "2", 0), pod("a", 1, "1", 0), pod("b", 2, "1", 0)), "b a"},
		{"no help against equals", "3", list(pod("equal", 10, "2", 0), pod("a", 1, "2", 0)), "no room"},
		{"nothing in the way", "1", list(pod("a", 1, "1", 0)), noVictims},
	} {
		p, _ := plugin(t)
		n := node("n1", "4", c.pods...)
		got, st := p.try(framework.NewCycleState(), pod("new", 10, c.cpu, -1), n, nil, nil)
		if got == nil {
			if st.Message() != c.want {
				t.Errorf("%s: %s", c.name, st.Message())
			}
			continue
		}
		if names(got.victims) != c.want {
			t.Errorf("%s: victims %s, want %s", c.name, names(got.victims), c.want)
		}
		if len(n.Pods) != len(c.pods) {
			t.Errorf("%s: the snapshot's node was changed", c.name)
		}
	}
}

func names(pods []*model.PodInfo) string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Pod.Name)
	}
	return strings.Join(out, " ")
}

// TestNominatedRoomIsTaken: room that a pod of the same priority waits for does not count as free; that of a lower one
// does.
func TestNominatedRoomIsTaken(t *testing.T) {
	t.Parallel()
	for priority, want := range map[int32]string{10: "b a", 11: "b a", 9: "a"} {
		p, _ := plugin(t)
		p.Nominator.Set(pod("waiting", priority, "1", -1), "n1")
		n := node("n1", "2", pod("a", 1, "1", 0), pod("b", 2, "1", 0))
		got, st := p.try(framework.NewCycleState(), pod("new", 10, "1", -1), n,
			p.Nominator.On("n1", pod("new", 10, "1", -1)), nil)
		if got == nil || names(got.victims) != want {
			t.Errorf("waiting at %d: %v, %s, want %s", priority, got, st.Message(), want)
		}
	}
}

func TestPostFilter(t *testing.T) {
	t.Parallel()
	p, a := plugin(t)
	gone := metav1.NewTime(start)
	ending := pod("ending", 1, "1", 0)
	ending.Pod.DeletionTimestamp = &gone
	nodes := []*model.NodeInfo{node("small", "1", pod("x", 1, "1", 0)), node("n1", "2", pod("a", 1, "1", 0), ending),
		node("n2", "2", pod("b", 5, "2", 0)), node("equals", "2", pod("e", 10, "2", 0))}
	lower, higher, elsewhere := pod("lower", 5, "1", -1), pod("higher", 20, "1", -1), pod("elsewhere", 5, "1", -1)
	p.Nominator.Set(lower, "n1")
	p.Nominator.Set(elsewhere, "n2")
	p.Nominator.Set(higher, "equals")
	preemptor := pod("new", 10, "2", -1)
	node, victims, st := p.Foresee(t.Context(), p.profile, framework.NewCycleState(), preemptor,
		refused(p, preemptor, nodes...))
	if node != "n1" || names(victims) != "a ending" || !st.IsSuccess() || len(a.calls) > 0 || a.searches > 0 ||
		p.Nominator.Of("lower") == "" {
		t.Errorf("foreseen: %s on %q, %s; it did %q", names(victims), node, st.Message(), a.calls)
	}
	got, st := p.PostFilter(t.Context(), p.profile, framework.NewCycleState(), preemptor,
		refused(p, preemptor, nodes...))
	// in the words of a kube-scheduler v1.37.2
	if got != "n1" || !st.IsSuccess() ||
		st.Message() != "preemption: found a potential placement for pod on node n1, preempting 2 victims" {
		t.Fatalf("node %q, %s", got, st.Message())
	}
	p.runs.Wait()
	slices.Sort(a.calls)
	if want := []string{"event a Preempted Preempted by pod new on node n1", `nominate lower ""`, "preempt a true",
		"ungate new"}; !slices.Equal(a.calls, want) {
		t.Errorf("calls %q, want %q: what ends already needs no second deletion", a.calls, want)
	}
	if p.Nominator.Of("lower") != "" || p.Nominator.Of("elsewhere") != "n2" || p.Nominator.Of("higher") != "equals" {
		t.Error("not just the lower pod's nomination to the node was taken back")
	}
	if a.searches != 1 || !slices.Equal(a.chosen, []int{2}) {
		t.Errorf("counted %d searches and victims %v, want 1 search and 2 victims, also the one that ends already",
			a.searches, a.chosen)
	}
}

// TestPostFilterFinds no way, and says for how many nodes which reason holds.
func TestPostFilterFinds(t *testing.T) {
	t.Parallel()
	ending := preemptedPod("ending", 1, "1", 0)
	never := pod("never", 10, "1", -1)
	never.Pod.Spec.PreemptionPolicy = new(corev1.PreemptNever)
	const finds = "preemption: found a potential placement for pod on node n2, preempting 1 victims"
	for _, c := range []struct {
		name      string
		pod       *model.PodInfo
		nominated string
		refuse    error
		node      string
		want      string
	}{
		{"never", never, "", nil, "", "preemption: not eligible due to preemptionPolicy=Never."},
		{"waits for its victims", pod("new", 10, "1", -1), "n1", nil, "n1",
			"preemption: not eligible due to a terminating pod on the nominated node."},
		{"nominated to a node that is gone", pod("new", 10, "1", -1), "n9", nil, "n2", finds},
		{"victim of its own priority is not its victim", pod("new", 1, "1", -1), "n1", nil, "",
			"preemption: 0/3 nodes are available: 3 " + noVictims + "."},
		{"too big for some", pod("new", 10, "2", -1), "", nil, "",
			"preemption: 0/3 nodes are available: 3 " + notHelpful + "."},
		{"eviction fails later", pod("new", 10, "1", -1), "", errors.New("no"), "n2", finds},
	} {
		p, a := plugin(t)
		a.refuse = c.refuse
		if c.nominated != "" {
			p.Nominator.Set(c.pod, c.nominated)
		}
		nodes := []*model.NodeInfo{node("n1", "1", pod("e1", 1, "100m", 0), ending),
			node("n2", "1", pod("b", 1, "1", 9)), node("n3", "1", pod("c", 2, "1", 9))}
		got, st := p.PostFilter(t.Context(), p.profile, framework.NewCycleState(), c.pod, refused(p, c.pod, nodes...))
		if got != c.node || st.Message() != c.want {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, got, st.Message(), c.node, c.want)
		}
		if found := c.node == "n2"; a.searches != 1 || (len(a.chosen) == 1) != found {
			t.Errorf("%s: counted %d searches and victims %v", c.name, a.searches, a.chosen)
		}
		p.runs.Wait()
		if c.refuse != nil && !slices.Contains(a.calls, "retry new") {
			t.Errorf("%s: nobody was told: %q", c.name, a.calls)
		}
	}
}

// TestEvictionsDoNotHoldUpTheLoop: KEP-4832, asynchronous preemption. PostFilter returns before the victims are
// evicted; until they are, the preemptor is not tried again.
func TestEvictionsDoNotHoldUpTheLoop(t *testing.T) {
	t.Parallel()
	p, a := plugin(t)
	a.block = make(chan struct{})
	preemptor := pod("new", 10, "1", -1)
	n := node("n1", "1", pod("victim", 1, "1", 0))
	if got, st := p.PostFilter(t.Context(), p.profile, framework.NewCycleState(), preemptor,
		refused(p, preemptor, n)); got != "n1" || !st.IsSuccess() {
		t.Fatalf("node %q, %s", got, st.Message())
	}
	if st := p.PreEnqueue(preemptor); st.Message() != "waiting for the preemption for this pod to be finished" {
		t.Errorf("while victims are evicted: %q", st.Message())
	}
	if st := p.PreEnqueue(pod("another", 10, "1", -1)); !st.IsSuccess() {
		t.Errorf("another pod is held back: %s", st.Message())
	}
	close(a.block)
	p.runs.Wait()
	if st := p.PreEnqueue(preemptor); !st.IsSuccess() || !slices.Contains(a.calls, "ungate new") {
		t.Errorf("afterwards: %q, calls %q", st.Message(), a.calls)
	}
}

// TestFiltersArePreparedOnlyForCandidates: preparing them looks at all nodes, and most pods that fit nowhere have
// nobody to evict.
func TestFiltersArePreparedOnlyForCandidates(t *testing.T) {
	t.Parallel()
	for priority, want := range map[int32]int{1: 0, 10: 1} {
		p, _ := plugin(t)
		preemptor := pod("new", priority, "1", -1)
		d := refused(p, preemptor, node("n1", "1", pod("a", 1, "1", 0)), node("n2", "1", pod("b", 1, "1", 0)))
		prepared := 0
		d.Prepare = func() *framework.Status { prepared++; return nil }
		p.PostFilter(t.Context(), p.profile, framework.NewCycleState(), preemptor, d)
		p.runs.Wait()
		if prepared != want {
			t.Errorf("priority %d: prepared %d times, want %d", priority, prepared, want)
		}
	}
}

// preemptedPod is a victim that takes its time to end.
func preemptedPod(name string, priority int32, cpu string, minute int) *model.PodInfo {
	p := pod(name, priority, cpu, minute)
	p.Pod.DeletionTimestamp = &metav1.Time{Time: start}
	p.Pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler}}
	return p
}

// TestWhoWaitsForItsVictims: only a pod whose nominated node still has victims of preemption, of lower priority than
// itself, and could take the pod once they are gone. Anything else may take for ever.
func TestWhoWaitsForItsVictims(t *testing.T) {
	t.Parallel()
	victim := preemptedPod("victim", 1, "1", 0)
	deleted := pod("deleted", 1, "1", 0)
	deleted.Pod.DeletionTimestamp = &metav1.Time{Time: start}
	evicted := preemptedPod("evicted", 1, "1", 0)
	evicted.Pod.Status.Conditions[0].Reason = "EvictionByEvictionAPI"
	equal := preemptedPod("equal", 10, "1", 0)
	for _, c := range []struct {
		name  string
		on    *model.PodInfo
		code  framework.Code
		waits bool
	}{
		{"a victim of preemption", victim, framework.Unschedulable, true},
		{"the node became one where no eviction helps", victim, framework.UnschedulableAndUnresolvable, false},
		{"deleted by somebody, perhaps held by a finalizer", deleted, framework.Unschedulable, false},
		{"evicted by somebody else", evicted, framework.Unschedulable, false},
		{"a victim of a pod that is more important", equal, framework.Unschedulable, false},
		{"running", pod("running", 1, "1", 0), framework.Unschedulable, false},
	} {
		p, _ := plugin(t)
		preemptor := pod("new", 10, "1", -1)
		p.Nominator.Set(preemptor, "n1")
		n1 := node("n1", "1", c.on)
		d := framework.NewDiagnosis(model.NewSnapshot(n1))
		d.Reject(n1, framework.NewStatus(c.code, "why"))
		if why := p.ineligible(preemptor, d); (why != "") != c.waits {
			t.Errorf("%s: %q", c.name, why)
		}
	}
}

func TestEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nodes, least, percent, want int }{
		{50, 0, 0, 100}, {5000, 0, 0, 500}, {5000, 1, 1, 50}, {10, 3, 1, 3}, {500, 0, 1, 5}, {5000, 7, 0, 7},
	} {
		p := &Plugin{MinNodes: c.least, Percent: c.percent}
		if got := p.enough(c.nodes); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
