package framework

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
)

// fake is a plug-in for every extension point that answers as told and writes down that it was called.
type fake struct {
	name   string
	calls  *[]string
	names  map[string]bool
	status *Status // of every extension point
	node   string
	scores map[string]int64
	wait   time.Duration
}

func (f *fake) Name() string { return f.name }

func (f *fake) called(what string) *Status {
	if f.calls != nil {
		*f.calls = append(*f.calls, f.name+" "+what)
	}
	return f.status
}

func (f *fake) PreEnqueue(*PodInfo) *Status { return f.called("PreEnqueue") }
func (f *fake) PreFilter(*CycleState, *PodInfo, *Snapshot) (map[string]bool, *Status) {
	return f.names, f.called("PreFilter")
}
func (f *fake) AddPod(*CycleState, *PodInfo, *PodInfo, *NodeInfo)    { f.called("AddPod") }
func (f *fake) RemovePod(*CycleState, *PodInfo, *PodInfo, *NodeInfo) { f.called("RemovePod") }
func (f *fake) Filter(*CycleState, *PodInfo, *NodeInfo) *Status      { return f.called("Filter") }
func (f *fake) PostFilter(context.Context, *CycleState, *PodInfo, *Diagnosis) (string, *Status) {
	return f.node, f.called("PostFilter")
}
func (f *fake) PreScore(*CycleState, *PodInfo, *Snapshot, []*NodeInfo) *Status {
	return f.called("PreScore")
}
func (f *fake) Score(_ *CycleState, _ *PodInfo, n *NodeInfo) int64 { return f.scores[n.Name()] }
func (f *fake) Reserve(context.Context, *CycleState, *PodInfo, string) *Status {
	return f.called("Reserve")
}
func (f *fake) Unreserve(context.Context, *CycleState, *PodInfo, string) { f.called("Unreserve") }
func (f *fake) Permit(context.Context, *CycleState, *PodInfo, string) (*Status, time.Duration) {
	return f.called("Permit"), f.wait
}
func (f *fake) PreBind(context.Context, *CycleState, *PodInfo, string) *Status {
	return f.called("PreBind")
}
func (f *fake) Bind(context.Context, *CycleState, *PodInfo, string) *Status { return f.called("Bind") }
func (f *fake) PostBind(context.Context, *CycleState, *PodInfo, string)     { f.called("PostBind") }

type sorter struct{ name string }

func (s sorter) Name() string            { return s.name }
func (sorter) Less(a, b *QueuedPod) bool { return false }
func (sorter) NormalizeScore([]int64)    {}
func (sorter) EventsToRegister() []Interest {
	return []Interest{{Kind: NodeEvent, Action: Add | UpdateLabels}}
}

// profile has a plug-in that sorts and the given ones.
func profile(t *testing.T, plugins ...*fake) *Profile {
	t.Helper()
	list := []Enabled{{Plugin: sorter{"Sort"}}}
	for _, p := range plugins {
		list = append(list, Enabled{Plugin: p})
	}
	p, err := NewProfile("s", list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func named(name string) *NodeInfo {
	return NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func podOf(uid string) *PodInfo {
	return NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}})
}

func TestNewProfileChecksWhatItNeeds(t *testing.T) {
	t.Parallel()
	for want, list := range map[string][]Enabled{
		`profile "s": no queue sort plugin is enabled`:                    {{Plugin: &fake{name: "A"}}},
		`profile "s": at least one bind plugin is needed`:                 {{Plugin: sorter{"Sort"}}},
		`profile "s": both First and Second sort the queue, only one may`: {{Plugin: sorter{"First"}}, {Plugin: sorter{"Second"}}},
	} {
		if _, err := NewProfile("s", list); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRunStopsAtTheFirstRefusal at each extension point that asks plug-ins in turn, and names who refused.
func TestRunStopsAtTheFirstRefusal(t *testing.T) {
	t.Parallel()
	state, pod := NewCycleState(), podOf("p")
	for point, run := range map[string]func(*Profile) *Status{
		"PreEnqueue": func(p *Profile) *Status { return p.RunPreEnqueue(pod) },
		"PreFilter":  func(p *Profile) *Status { _, _, st := p.RunPreFilter(state, pod, NewSnapshot()); return st },
		"Filter":     func(p *Profile) *Status { return p.RunFilter(state, pod, named("n")) },
		"PreScore":   func(p *Profile) *Status { _, st := p.RunScores(t.Context(), state, pod, NewSnapshot(), nil); return st },
		"Reserve":    func(p *Profile) *Status { return p.RunReserve(t.Context(), state, pod, "n") },
		"Permit":     func(p *Profile) *Status { st, _ := p.RunPermit(t.Context(), state, pod, "n"); return st },
		"PreBind":    func(p *Profile) *Status { return p.RunPreBind(t.Context(), state, pod, "n") },
	} {
		var calls []string
		shared := NewStatus(Unschedulable, "no")
		p := profile(t, &fake{name: "A", calls: &calls}, &fake{name: "B", calls: &calls, status: shared}, &fake{name: "C", calls: &calls})
		st := run(p)
		if st == nil || st.Plugin != "B" || st.Message() != "no" || shared.Plugin != "" {
			t.Errorf("%s: %+v; the plug-in's own status became %+v", point, st, shared)
		}
		if want := []string{"A " + point, "B " + point}; !slices.Equal(calls, want) {
			t.Errorf("%s: calls %v, want %v", point, calls, want)
		}
	}
}

func TestSkipLeavesTheCoupledPointsOut(t *testing.T) {
	t.Parallel()
	var calls []string
	skips := &fake{name: "A", calls: &calls, status: NewStatus(Skip), scores: map[string]int64{"n": 100}}
	works := &fake{name: "B", calls: &calls, scores: map[string]int64{"n": 7}}
	p, state, pod, n := profile(t, skips, works), NewCycleState(), podOf("p"), named("n")
	if names, restricted, st := p.RunPreFilter(state, pod, NewSnapshot(n)); names != nil || restricted != nil || !st.IsSuccess() {
		t.Errorf("PreFilter: %v %v %+v", names, restricted, st)
	}
	if st := p.RunFilter(state, pod, n); !st.IsSuccess() {
		t.Errorf("Filter: %+v", st)
	}
	p.AddPod(state, pod, pod, n)
	p.RemovePod(state, pod, pod, n)
	scores, st := p.RunScores(t.Context(), state, pod, NewSnapshot(n), []*NodeInfo{n})
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
		{name: "one", plugins: []map[string]bool{nil, set("a", "b")}, want: []string{"a", "b"}, restricted: []string{"P1"}},
		{name: "two", plugins: []map[string]bool{set("a", "b"), set("b", "c")}, want: []string{"b"}, restricted: []string{"P0", "P1"}},
		{name: "two without a common node", plugins: []map[string]bool{set("a"), set("b")}, refusal: "node(s) didn't satisfy plugin(s) [P0 P1] simultaneously"},
		{name: "one without any node", plugins: []map[string]bool{nil, set()}, refusal: "node(s) didn't satisfy plugin P1"},
	} {
		var list []*fake
		for i, names := range c.plugins {
			list = append(list, &fake{name: fmt.Sprint("P", i), names: names})
		}
		names, restricted, st := profile(t, list...).RunPreFilter(NewCycleState(), podOf("p"), NewSnapshot())
		if st.Message() != c.refusal || c.refusal != "" && st.Code != UnschedulableAndUnresolvable {
			t.Errorf("%s: %+v", c.name, st)
		}
		if c.refusal == "" && (!slices.Equal(slices.Sorted(maps.Keys(names)), c.want) || !slices.Equal(restricted, c.restricted)) {
			t.Errorf("%s: %v by %v, want %v by %v", c.name, names, restricted, c.want, c.restricted)
		}
	}
}

func TestScoresAreWeighted(t *testing.T) {
	t.Parallel()
	a, b := &fake{name: "A", scores: map[string]int64{"n1": 10, "n2": 20}}, &fake{name: "B", scores: map[string]int64{"n1": 5}}
	p, err := NewProfile("s", []Enabled{{Plugin: sorter{"Sort"}}, {Plugin: a, Weight: 3}, {Plugin: b}})
	if err != nil {
		t.Fatal(err)
	}
	nodes := []*NodeInfo{named("n1"), named("n2")}
	if got, _ := p.RunScores(t.Context(), NewCycleState(), podOf("p"), NewSnapshot(nodes...), nodes); !slices.Equal(got, []int64{35, 60}) {
		t.Errorf("%v, want 3*A + B", got)
	}
}

func TestDefaultNormalize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want, reverse []int64 }{
		{[]int64{0, 5, 10}, []int64{0, 50, 100}, []int64{100, 50, 0}},
		{[]int64{300, 100}, []int64{100, 33}, []int64{0, 67}},
		{[]int64{0, 0}, []int64{0, 0}, []int64{100, 100}},
		{nil, nil, nil},
	} {
		for _, reverse := range []bool{false, true} {
			got, want := slices.Clone(c.in), c.want
			if reverse {
				want = c.reverse
			}
			if DefaultNormalize(reverse, got); !slices.Equal(got, want) {
				t.Errorf("%v, reverse %v: %v, want %v", c.in, reverse, got, want)
			}
		}
	}
}

func TestPostFilterAsksUntilOneFindsAWayOut(t *testing.T) {
	t.Parallel()
	no := NewStatus(Unschedulable, "no")
	for _, c := range []struct {
		name    string
		plugins []*fake
		node    string
		code    Code
		calls   int
	}{
		{"nobody asked", []*fake{{name: "B"}}, "", Success, 1},
		{"second", []*fake{{name: "A", status: no}, {name: "B", node: "n"}, {name: "C"}}, "n", Success, 2},
		{"nobody", []*fake{{name: "A", status: no}, {name: "B", status: no}}, "", Unschedulable, 2},
		{"nobody, but one waits for a node", []*fake{{name: "A", node: "n", status: no}, {name: "B", status: no}}, "n", Unschedulable, 2},
		{"an error ends it", []*fake{{name: "A", status: AsStatus(errors.New("x"))}, {name: "B", node: "n"}}, "", Error, 1},
	} {
		var calls []string
		for _, f := range c.plugins {
			f.calls = &calls
		}
		node, st := profile(t, c.plugins...).RunPostFilter(t.Context(), NewCycleState(), podOf("p"), nil)
		code := Success
		if st != nil {
			code = st.Code
		}
		if node != c.node || code != c.code || len(calls) != c.calls {
			t.Errorf("%s: node %q, %+v, calls %v", c.name, node, st, calls)
		}
	}
	p := profile(t, &fake{name: "A"})
	p.PostFilters = nil
	if node, st := p.RunPostFilter(t.Context(), NewCycleState(), podOf("p"), nil); node != "" || !st.IsRejected() {
		t.Errorf("without any plug-in: %q %+v, want a refusal", node, st)
	}
}

func TestBindAndUndo(t *testing.T) {
	t.Parallel()
	var calls []string
	skip := NewStatus(Skip)
	p := profile(t, &fake{name: "A", calls: &calls, status: skip}, &fake{name: "B", calls: &calls}, &fake{name: "C", calls: &calls})
	if st := p.RunBind(t.Context(), NewCycleState(), podOf("p"), "n"); !st.IsSuccess() {
		t.Errorf("bound by the second: %+v", st)
	}
	p.RunPostBind(t.Context(), NewCycleState(), podOf("p"), "n")
	p.RunUnreserve(t.Context(), NewCycleState(), podOf("p"), "n")
	want := "A Bind, B Bind, A PostBind, B PostBind, C PostBind, C Unreserve, B Unreserve, A Unreserve"
	if got := strings.Join(calls, ", "); got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
	st := profile(t, &fake{name: "A", status: skip}).RunBind(t.Context(), NewCycleState(), podOf("p"), "n")
	if st == nil || st.Code != Error {
		t.Errorf("everyone skipped: %+v, want an error: the pod is not bound", st)
	}
}

func TestHelps(t *testing.T) {
	t.Parallel()
	p := profile(t, &fake{name: "Mute"})
	p.Interests["Hints"] = []Interest{{Kind: AssignedPod, Action: Delete, Hint: func(_ *PodInfo, e Event) bool { return e.Label == "right" }}}
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
		e      Event
		want   bool
	}{
		{"nobody named", nil, Event{Kind: NodeEvent, Action: Delete}, true},
		{"who says nothing is woken by all", set("Mute"), Event{Kind: NodeEvent, Action: Delete}, true},
		{"of interest", set("Sort"), Event{Kind: NodeEvent, Action: Add}, true},
		{"one of several changes is of interest", set("Sort"), Event{Kind: NodeEvent, Action: UpdateTaints | UpdateLabels}, true},
		{"another action", set("Sort"), Event{Kind: NodeEvent, Action: Delete | UpdateTaints}, false},
		{"another kind", set("Sort"), Event{Kind: AssignedPod, Action: Add}, false},
		{"hint hopes", set("Hints"), Event{Kind: AssignedPod, Action: Delete, Label: "right"}, true},
		{"hint does not", set("Hints"), Event{Kind: AssignedPod, Action: Delete}, false},
		{"one of two plug-ins", set("Hints", "Sort"), Event{Kind: NodeEvent, Action: Add}, true},
	} {
		if got := p.Helps(podOf("p"), c.failed, c.e); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
