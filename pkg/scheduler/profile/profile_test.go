package profile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// fake is a plug-in for every extension point that answers as told and writes down that it was called.
type fake struct {
	name   string
	calls  *[]string
	names  map[string]bool
	status *framework.Status // of every extension point
	node   string
	scores map[string]int64
	wait   time.Duration
}

func (f *fake) Name() string { return f.name }

func (f *fake) called(what string) *framework.Status {
	if f.calls != nil {
		*f.calls = append(*f.calls, f.name+" "+what)
	}
	return f.status
}

func (f *fake) PreEnqueue(*model.PodInfo) *framework.Status { return f.called("PreEnqueue") }
func (f *fake) PreFilter(*framework.CycleState, *model.PodInfo, *model.Snapshot) (map[string]bool, *framework.Status) {
	return f.names, f.called("PreFilter")
}
func (f *fake) AddPod(*framework.CycleState, *model.PodInfo, *model.PodInfo, *model.NodeInfo) {
	f.called("AddPod")
}
func (f *fake) RemovePod(*framework.CycleState, *model.PodInfo, *model.PodInfo, *model.NodeInfo) {
	f.called("RemovePod")
}
func (f *fake) Filter(*framework.CycleState, *model.PodInfo, *model.NodeInfo) *framework.Status {
	return f.called("Filter")
}
func (f *fake) PostFilter(context.Context, framework.Handle, *framework.CycleState, *model.PodInfo,
	*framework.Diagnosis) (string, *framework.Status) {
	return f.node, f.called("PostFilter")
}
func (f *fake) PreScore(*framework.CycleState, *model.PodInfo, *model.Snapshot, []*model.NodeInfo) *framework.Status {
	return f.called("PreScore")
}
func (f *fake) Score(_ *framework.CycleState, _ *model.PodInfo, n *model.NodeInfo) int64 {
	return f.scores[n.Name()]
}
func (f *fake) Reserve(context.Context, *framework.CycleState, *model.PodInfo, string) *framework.Status {
	return f.called("Reserve")
}
func (f *fake) Unreserve(context.Context, *framework.CycleState, *model.PodInfo, string) {
	f.called("Unreserve")
}
func (f *fake) Permit(context.Context, *framework.CycleState, *model.PodInfo, string) (*framework.Status,
	time.Duration) {
	return f.called("Permit"), f.wait
}
func (f *fake) PreBind(context.Context, *framework.CycleState, *model.PodInfo, string) *framework.Status {
	return f.called("PreBind")
}
func (f *fake) Bind(context.Context, *framework.CycleState, *model.PodInfo, string) *framework.Status {
	return f.called("Bind")
}
func (f *fake) PostBind(context.Context, *framework.CycleState, *model.PodInfo, string) {
	f.called("PostBind")
}

type sorter struct{ name string }

func (s sorter) Name() string                      { return s.name }
func (sorter) Less(a, b *framework.QueuedPod) bool { return false }
func (sorter) NormalizeScore([]int64)              {}
func (sorter) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateLabels}}
}

// profileOf returns a profile with a plug-in that sorts and the given ones.
func profileOf(t *testing.T, plugins ...*fake) *Profile {
	t.Helper()
	list := []Enabled{{Plugin: sorter{"Sort"}}}
	for _, p := range plugins {
		list = append(list, Enabled{Plugin: p})
	}
	p, err := New("s", list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nodeOf(name string) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func podWith(uid string) *model.PodInfo {
	return model.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}})
}

func TestNewProfileChecksWhatItNeeds(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]Enabled{
		`profile "s": no queue sort plugin is enabled`:    {{Plugin: &fake{name: "A"}}},
		`profile "s": at least one bind plugin is needed`: {{Plugin: sorter{"Sort"}}},
		`profile "s": both First and Second sort the queue, only one may`: {{Plugin: sorter{"First"}},
			{Plugin: sorter{"Second"}}},
	} {
		if _, err := New("s", list); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRunStopsAtTheFirstRefusal at each extension point that asks plug-ins in turn, and names who refused.
func TestRunStopsAtTheFirstRefusal(t *testing.T) {
	t.Parallel()
	state, pod := framework.NewCycleState(), podWith("p")
	for point, run := range map[string]func(*Profile) *framework.Status{
		"PreEnqueue": func(p *Profile) *framework.Status { return p.RunPreEnqueue(pod) },
		"PreFilter": func(p *Profile) *framework.Status {
			_, _, st := p.RunPreFilter(state, pod, model.NewSnapshot())
			return st
		},
		"Filter": func(p *Profile) *framework.Status { return p.RunFilter(state, pod, nodeOf("n")) },
		"PreScore": func(p *Profile) *framework.Status {
			_, st := p.RunScores(t.Context(), state, pod, model.NewSnapshot(), nil)
			return st
		},
		"Reserve": func(p *Profile) *framework.Status { return p.RunReserve(t.Context(), state, pod, "n") },
		"Permit":  func(p *Profile) *framework.Status { st, _ := p.RunPermit(t.Context(), state, pod, "n"); return st },
		"PreBind": func(p *Profile) *framework.Status { return p.RunPreBind(t.Context(), state, pod, "n") },
	} {
		var calls []string
		shared := framework.NewStatus(framework.Unschedulable, "no")
		p := profileOf(t, &fake{name: "A", calls: &calls}, &fake{name: "B", calls: &calls, status: shared},
			&fake{name: "C", calls: &calls})
		st := run(p)
		if st == nil || st.Plugin != "B" || st.Message() != "no" || shared.Plugin != "" {
			t.Errorf("%s: %+v; the plug-in's own status became %+v", point, st, shared)
		}
		if want := []string{"A " + point, "B " + point}; !slices.Equal(calls, want) {
			t.Errorf("%s: calls %v, want %v", point, calls, want)
		}
	}
}

// TestRefusalsAreAll: every filter that refuses is asked and named, those that PreFilter left out are not.
func TestRefusalsAreAll(t *testing.T) {
	t.Parallel()
	no := framework.NewStatus(framework.Unschedulable, "no")
	p := profileOf(t, &fake{name: "A", status: no}, &fake{name: "B"}, &fake{name: "C", status: no},
		&fake{name: "D", status: no})
	state := framework.NewCycleState()
	state.SkipFilter("D")
	var names []string
	for _, st := range p.Refusals(state, podWith("p"), nodeOf("n")) {
		names = append(names, st.Plugin)
	}
	if want := []string{"A", "C"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestSkipLeavesTheCoupledPointsOut(t *testing.T) {
	t.Parallel()
	var calls []string
	skips := &fake{name: "A", calls: &calls, status: framework.NewStatus(framework.Skip),
		scores: map[string]int64{"n": 100}}
	works := &fake{name: "B", calls: &calls, scores: map[string]int64{"n": 7}}
	p, state, pod, n := profileOf(t, skips, works), framework.NewCycleState(), podWith("p"), nodeOf("n")
	if names, restricted, st := p.RunPreFilter(state, pod, model.NewSnapshot(n)); names != nil || restricted != nil ||
		!st.IsSuccess() {
		t.Errorf("PreFilter: %v %v %+v", names, restricted, st)
	}
	if st := p.RunFilter(state, pod, n); !st.IsSuccess() {
		t.Errorf("Filter: %+v", st)
	}
	p.AddPod(state, pod, pod, n)
	p.RemovePod(state, pod, pod, n)
	scores, st := p.RunScores(t.Context(), state, pod, model.NewSnapshot(n), []*model.NodeInfo{n})
	if !st.IsSuccess() || !slices.Equal(scores, []int64{7}) {
		t.Errorf("scores %v %+v, want those of B alone", scores, st)
	}
	want := []string{"A PreFilter", "B PreFilter", "B Filter", "B AddPod", "B RemovePod", "A PreScore", "B PreScore"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
}

func TestPreFiltersNarrowTogether(t *testing.T) {
	t.Parallel()
	set := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, n := range names {
			out[n] = true
		}
		return out
	}
	for _, c := range []struct {
		name       string
		plugins    []map[string]bool
		want       []string
		restricted []string
		refusal    string
	}{
		{name: "nobody narrows", plugins: []map[string]bool{nil, nil}},
		{name: "one", plugins: []map[string]bool{nil, set("a", "b")}, want: []string{"a", "b"},
			restricted: []string{"P1"}},
		{name: "two", plugins: []map[string]bool{set("a", "b"), set("b", "c")}, want: []string{"b"},
			restricted: []string{"P0", "P1"}},
		{name: "two without a common node", plugins: []map[string]bool{set("a"), set("b")},
			refusal: "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"},
		{name: "one without any node", plugins: []map[string]bool{nil, set()},
			refusal: "node(s) didn't satisfy plugin P1"},
	} {
		var list []*fake
		for i, names := range c.plugins {
			list = append(list, &fake{name: fmt.Sprint("P", i), names: names})
		}
		names, restricted, st := profileOf(t, list...).RunPreFilter(framework.NewCycleState(), podWith("p"),
			model.NewSnapshot())
		if st.Message() != c.refusal || c.refusal != "" && st.Code != framework.UnschedulableAndUnresolvable {
			t.Errorf("%s: %+v", c.name, st)
		}
		if c.refusal == "" && (!slices.Equal(slices.Sorted(maps.Keys(names)), c.want) ||
			!slices.Equal(restricted, c.restricted)) {
			t.Errorf("%s: %v by %v, want %v by %v", c.name, names, restricted, c.want, c.restricted)
		}
	}
}

func TestScoresAreWeighted(t *testing.T) {
	t.Parallel()
	a, b := &fake{name: "A", scores: map[string]int64{"n1": 10, "n2": 20}},
		&fake{name: "B", scores: map[string]int64{"n1": 5}}
	p, err := New("s", []Enabled{{Plugin: sorter{"Sort"}}, {Plugin: a, Weight: 3}, {Plugin: b}})
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*model.NodeInfo{nodeOf("n1"), nodeOf("n2")}
	if got, _ := p.RunScores(t.Context(), framework.NewCycleState(), podWith("p"), model.NewSnapshot(nodes...),
		nodes); !slices.Equal(got, []int64{35, 60}) {
		t.Errorf("%v, want 3*A + B", got)
	}
	each := ""
	if st := p.EachScore(framework.NewCycleState(), podWith("p"), model.NewSnapshot(nodes...), nodes,
		func(pl Weighted, scores []int64) {
			each += fmt.Sprintln(pl.Name(), pl.Weight, scores)
		}); !st.IsSuccess() || each != "A 3 [10 20]\nB 1 [5 0]\n" {
		t.Errorf("%s, %q", st.Message(), each)
	}
}

func TestPostFilterAsksUntilOneFindsAWayOut(t *testing.T) {
	t.Parallel()
	no := framework.NewStatus(framework.Unschedulable, "no")
	for _, c := range []struct {
		name    string
		plugins []*fake
		node    string
		code    framework.Code
		calls   int
	}{
		{"nobody asked", []*fake{{name: "B"}}, "", framework.Success, 1},
		{"second", []*fake{{name: "A", status: no}, {name: "B", node: "n"}, {name: "C"}}, "n", framework.Success, 2},
		{"nobody", []*fake{{name: "A", status: no}, {name: "B", status: no}}, "", framework.Unschedulable, 2},
		{"nobody, but one waits for a node", []*fake{{name: "A", node: "n", status: no}, {name: "B", status: no}}, "n",
			framework.Unschedulable, 2},
		{"an error ends it", []*fake{{name: "A", status: framework.AsStatus(errors.New("x"))}, {name: "B", node: "n"}},
			"", framework.Error, 1},
	} {
		var calls []string
		for _, f := range c.plugins {
			f.calls = &calls
		}
		node, st := profileOf(t, c.plugins...).RunPostFilter(t.Context(), nil, framework.NewCycleState(), podWith("p"),
			nil)
		code := framework.Success
		if st != nil {
			code = st.Code
		}
		if node != c.node || code != c.code || len(calls) != c.calls {
			t.Errorf("%s: node %q, %+v, calls %v", c.name, node, st, calls)
		}
	}
	p := profileOf(t, &fake{name: "A"})
	p.PostFilters = nil
	if node, st := p.RunPostFilter(t.Context(), nil, framework.NewCycleState(), podWith("p"), nil); node != "" ||
		!st.IsRejected() {
		t.Errorf("without any plug-in: %q %+v, want a refusal", node, st)
	}
}

func TestBindAndUndo(t *testing.T) {
	t.Parallel()
	var calls []string
	skip := framework.NewStatus(framework.Skip)
	p := profileOf(t, &fake{name: "A", calls: &calls, status: skip}, &fake{name: "B", calls: &calls},
		&fake{name: "C", calls: &calls})
	if st := p.RunBind(t.Context(), framework.NewCycleState(), podWith("p"), "n"); !st.IsSuccess() {
		t.Errorf("bound by the second: %+v", st)
	}
	p.RunPostBind(t.Context(), framework.NewCycleState(), podWith("p"), "n")
	p.RunUnreserve(t.Context(), framework.NewCycleState(), podWith("p"), "n")
	want := "A Bind, B Bind, A PostBind, B PostBind, C PostBind, C Unreserve, B Unreserve, A Unreserve"
	if got := strings.Join(calls, ", "); got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	st := profileOf(t, &fake{name: "A", status: skip}).RunBind(t.Context(), framework.NewCycleState(), podWith("p"),
		"n")
	if st == nil || st.Code != framework.Error {
		t.Errorf("everyone skipped: %+v, want an error: the pod is not bound", st)
	}
}

func TestHelps(t *testing.T) {
	t.Parallel()
	p := profileOf(t, &fake{name: "Mute"})
	p.Interests["Hints"] = []clusterevent.Interest{
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete,
			Hint: func(_ *model.PodInfo, e clusterevent.Event) bool {
				return e.Label == "right"
			}}}
	set := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, n := range names {
			out[n] = true
		}
		return out
	}
	for _, c := range []struct {
		name   string
		failed map[string]bool
		e      clusterevent.Event
		want   bool
	}{
		{"nobody named", nil, clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Delete}, true},
		{"who says nothing is woken by all", set("Mute"),
			clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Delete}, true},
		{"of interest", set("Sort"), clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add}, true},
		{"one of several changes is of interest", set("Sort"),
			clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateTaints | clusterevent.UpdateLabels},
			true},
		{"another action", set("Sort"),
			clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Delete | clusterevent.UpdateTaints},
			false},
		{"another kind", set("Sort"), clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Add},
			false},
		{"hint hopes", set("Hints"),
			clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Label: "right"}, true},
		{"hint does not", set("Hints"), clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete},
			false},
		{"one of two plug-ins", set("Hints", "Sort"),
			clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add}, true},
	} {
		if got := p.Helps(podWith("p"), c.failed, c.e); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
