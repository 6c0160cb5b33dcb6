package interpodaffinity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname

// teams are the labels of two namespaces; a third has none.
type teams struct{}

func (teams) Epoch() int64 { return 0 }
func (teams) NamespaceLabels(name string) labels.Set {
	return map[string]labels.Set{"red": {"team": "red"}, "blue": {"team": "blue"}}[name]
}

// term is about pods of an app; "red/web" looks into a namespace, "team=red/web" into those of a label, "*/web" into
// all.
func term(about, key string) corev1.PodAffinityTerm {
	t := corev1.PodAffinityTerm{TopologyKey: key}
	if ns, app, ok := strings.Cut(about, "/"); ok {
		about = app
		if k, v, ok := strings.Cut(ns, "="); ok {
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{k: v}}
		} else if ns == "*" {
			t.NamespaceSelector = &metav1.LabelSelector{}
		} else {
			t.Namespaces = []string{ns}
		}
	}
	t.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": about}}
	return t
}

// rule changes a pod's affinity.
type rule func(*corev1.Affinity)

func near(about, key string) rule {
	return func(a *corev1.Affinity) {
		l := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*l = append(*l, term(about, key))
	}
}

func apart(about, key string) rule {
	return func(a *corev1.Affinity) {
		l := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		*l = append(*l, term(about, key))
	}
}

func likes(about, key string, weight int32) rule {
	return func(a *corev1.Affinity) {
		l := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*l = append(*l, corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: term(about, key)})
	}
}

func shuns(about, key string, weight int32) rule {
	return func(a *corev1.Affinity) {
		l := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
		*l = append(*l, corev1.WeightedPodAffinityTerm{Weight: weight, PodAffinityTerm: term(about, key)})
	}
}

// pod is of an app, in the namespace red or the one before the slash.
func pod(app string, rules ...rule) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "red"}}
	if ns, name, ok := strings.Cut(app, "/"); ok {
		p.Namespace, app = ns, name
	}
	p.Labels = map[string]string{"app": app}
	if len(rules) > 0 {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{},
			PodAntiAffinity: &corev1.PodAntiAffinity{}}
	}
	for _, r := range rules {
		r(p.Spec.Affinity)
	}
	return model.NewPodInfo(p)
}

// nodes are a1 and a2 in zone a, b1 in zone b, and x in no zone; pods run on them by name.
func nodes(pods map[string][]*model.PodInfo) (*model.Snapshot, []*model.NodeInfo) {
	var list []*model.NodeInfo
	for _, name := range []string{"a1", "a2", "b1", "x"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{host: name}}}
		if name != "x" {
			n.Labels[zone] = name[:1]
		}
		list = append(list, model.NewNodeInfo(n, pods[name]...))
	}
	return model.NewSnapshot(list...), list
}

func on(node string, pods ...*model.PodInfo) map[string][]*model.PodInfo {
	return map[string][]*model.PodInfo{node: pods}
}

// verdicts are the nodes' messages, "" for those that fit; the tracker must say the same.
func verdicts(t *testing.T, p *model.PodInfo, s *model.Snapshot, list []*model.NodeInfo) []*framework.Status {
	t.Helper()
	plugin, state := &Plugin{Namespaces: teams{}, HardWeight: 1}, framework.NewCycleState()
	if _, st := plugin.PreFilter(state, p, s); !st.IsSuccess() && !st.IsSkip() {
		t.Fatalf("PreFilter: %+v", st)
	}
	newTracker := plugin.Track(p, s, nil).New
	if newTracker == nil {
		newTracker = func() framework.Tracker { return indifferent{} }
	}
	tracker := newTracker()
	for slot, n := range list {
		tracker.Changed(slot, n)
	}
	tracker.Begin()
	var out []*framework.Status
	for slot, n := range list {
		st := plugin.Filter(state, p, n)
		if tracked := tracker.Filter(slot); tracked.Message() != st.Message() {
			t.Errorf("node %s: %+v, by the tracker %+v", n.Name(), st, tracked)
		}
		out = append(out, st)
	}
	return out
}

// TestFilter: required terms of both sides (Kubernetes documentation, "Inter-pod affinity and anti-affinity").
func TestFilter(t *testing.T) {
	t.Parallel()
	web := func(rules ...rule) *model.PodInfo { return pod("web", rules...) }
	nilSelector := func(a *corev1.Affinity) {
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{{TopologyKey: zone}}
	}
	for _, c := range []struct {
		name string
		pod  *model.PodInfo
		runs map[string][]*model.PodInfo
		want string
	}{
		{"nothing asked", web(), on("a1", pod("db")), "a1 a2 b1 x"},
		{"near, in its zone", web(near("db", zone)), on("a1", pod("db")), "a1 a2"},
		{"near, on its node", web(near("db", host)), on("a1", pod("db")), "a1"},
		{"near one that is in no zone", web(near("db", zone)), on("x", pod("db")), ""},
		{"near nobody", web(near("db", zone)), nil, ""},
		{"near itself, the first", web(near("web", zone)), nil, "a1 a2 b1"},
		{"near itself, the second", web(near("web", zone)), on("b1", pod("web")), "b1"},
		{"near itself and another: not the first of a group", web(near("web", zone), near("db", zone)), nil, ""},
		{"all terms must be about one pod", web(near("db", zone), near("cache", zone)),
			on("a1", pod("db"), pod("cache")), ""},
		{"of two keys", web(near("db", zone), near("db", host)), map[string][]*model.PodInfo{"a1": {pod("db")}}, "a1"},
		{"its own namespace only", web(near("db", zone)), on("a1", pod("blue/db")), ""},
		{"a namespace by name", web(near("blue/db", zone)),
			map[string][]*model.PodInfo{"a1": {pod("blue/db")}, "b1": {pod("red/db")}}, "a1 a2"},
		{"namespaces by label", web(near("team=blue/db", zone)),
			map[string][]*model.PodInfo{"a1": {pod("blue/db")}, "b1": {pod("red/db"), pod("grey/db")}}, "a1 a2"},
		{"every namespace", web(near("*/db", zone)),
			map[string][]*model.PodInfo{"a1": {pod("blue/db")}, "b1": {pod("grey/db")}}, "a1 a2 b1"},
		{"no selector is about nobody", web(nilSelector), on("a1", pod("db")), ""},
		{"apart, by zone", web(apart("db", zone)), on("a1", pod("db")), "b1 x"},
		{"apart, by node", web(apart("db", host)), on("a1", pod("db")), "a2 b1 x"},
		{"apart, its own namespace only", web(apart("db", zone)), on("a1", pod("blue/db")), "a1 a2 b1 x"},
		{"apart from one that is in no zone", web(apart("db", zone)), on("x", pod("db")), "a1 a2 b1 x"},
		{"any term keeps apart", web(apart("db", host), apart("cache", host)),
			map[string][]*model.PodInfo{"a1": {pod("db")}, "a2": {pod("cache")}}, "b1 x"},
		{"another keeps apart", web(), on("a1", pod("db", apart("web", zone))), "b1 x"},
		{"another keeps apart, in its namespace", web(), on("a1", pod("blue/db", apart("web", zone))), "a1 a2 b1 x"},
		{"another keeps all teams' pods apart", web(), on("a1", pod("blue/db", apart("team=red/web", zone))), "b1 x"},
		{"another wants to be near: no matter", web(), on("a1", pod("db", near("web", zone))), "a1 a2 b1 x"},
		{"near and apart", web(near("db", zone), apart("web", host)),
			map[string][]*model.PodInfo{"a1": {pod("db")}, "a2": {pod("web")}}, "a1"},
	} {
		s, list := nodes(c.runs)
		var fits []string
		for i, st := range verdicts(t, c.pod, s, list) {
			if st.IsSuccess() {
				fits = append(fits, list[i].Name())
			}
		}
		if got := strings.Join(fits, " "); got != c.want {
			t.Errorf("%s: fits %q, want %q", c.name, got, c.want)
		}
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	s, list := nodes(map[string][]*model.PodInfo{"a1": {pod("db"), pod("cache")},
		"a2": {pod("db"), pod("guard", apart("web", host))}})
	var got []string
	for _, st := range verdicts(t, pod("web", near("db", zone), apart("cache", host)), s, list) {
		got = append(got, fmt.Sprint(st.Code, " ", st.Message()))
	}
	want := []string{
		"Unschedulable node(s) didn't match pod anti-affinity rules",
		"Unschedulable node(s) didn't satisfy existing pods anti-affinity rules",
		"UnschedulableAndUnresolvable node(s) didn't match pod affinity rules",
		"UnschedulableAndUnresolvable node(s) didn't match pod affinity rules",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPreFilterSkipsWhereNobodyHasTerms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pod  *model.PodInfo
		runs map[string][]*model.PodInfo
		skip bool
		free bool // no tracker is needed
	}{
		{"nobody", pod("web"), on("a1", pod("db")), true, true},
		{"the pod", pod("web", apart("web", host)), nil, false, false},
		{"another", pod("web"), on("a1", pod("db", apart("web", host))), false, false},
		{"another, but not about the pod", pod("web"), on("a1", pod("db", apart("db", host))), false, true},
	} {
		s, _ := nodes(c.runs)
		p := &Plugin{Namespaces: teams{}}
		_, st := p.PreFilter(framework.NewCycleState(), c.pod, s)
		if newTracker := p.Track(c.pod, s, nil).New; st.IsSkip() != c.skip || (newTracker == nil) != c.free {
			t.Errorf("%s: %+v, tracker needed %v", c.name, st, newTracker != nil)
		}
	}
}

// TestWhoSharesATracker: pods that the same terms are about and that have the same terms, whatever else their labels
// are.
func TestWhoSharesATracker(t *testing.T) {
	t.Parallel()
	s, _ := nodes(on("a1", pod("db", apart("web", host)), pod("db", near("*/api", zone))))
	p := &Plugin{Namespaces: teams{}, HardWeight: 1}
	key := func(pod *model.PodInfo, nominated ...*model.PodInfo) string {
		t := p.Track(pod, s, nominated)
		if t.New == nil {
			return "none"
		}
		return t.Key
	}
	named := func(app, name string, rules ...rule) *model.PodInfo {
		q := pod(app, rules...).Pod
		q.Labels["statefulset.kubernetes.io/pod-name"] = name
		return model.NewPodInfo(q)
	}
	one := pod("web", apart("web", host), likes("db", zone, 5))
	for _, c := range []struct {
		name string
		a, b string
		same bool
	}{
		{"pods of a StatefulSet", key(named("web", "web-0")), key(named("web", "web-1")), true},
		{"with terms of their own", key(named("web", "web-0", apart("web", host))),
			key(named("web", "web-1", apart("web", host))), true},
		{"no term is about them", key(pod("cache")), "none", true},
		{"other terms are about them", key(pod("web")), key(pod("api")), false},
		{"the term looks into another namespace", key(pod("web")), key(pod("blue/web")), false},
		{"other terms of their own", key(one), key(pod("web", apart("web", host), likes("db", host, 5))), false},
		{"another weight", key(one), key(pod("web", apart("web", host), likes("db", zone, 6))), false},
		{"the same term the other way round", key(pod("web", near("web", host))), key(pod("web", apart("web", host))),
			false},
		{"the term is about itself", key(pod("cache", near("cache", host))), key(pod("mem", near("cache", host))),
			false},
		{"a nominated pod's term is about it", key(pod("cache")), key(pod("cache"), pod("x", apart("cache", host))),
			false},
		{"a nominated pod's term is about others", key(pod("cache")), key(pod("cache"), pod("x", apart("x", host))),
			true},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: the keys are the same: %v", c.name, c.a == c.b)
		}
	}
}

// TestPreemptionsDryRun: AddPod and RemovePod must leave what PreFilter would have counted.
func TestPreemptionsDryRun(t *testing.T) {
	t.Parallel()
	web, guard, db := pod("web", apart("web", host), near("db", zone)), pod("guard", apart("web", host)), pod("db")
	s, list := nodes(map[string][]*model.PodInfo{"a1": {guard, db}})
	plugin, state := &Plugin{Namespaces: teams{}}, framework.NewCycleState()
	if _, st := plugin.PreFilter(state, web, s); !st.IsSuccess() {
		t.Fatal(st)
	}
	expect := func(step string, state *framework.CycleState, want string) {
		t.Helper()
		if got := plugin.Filter(state, web, list[0]).Message(); got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
	}
	expect("guarded", state, reasonExisting)
	try := state.Clone()
	plugin.RemovePod(try, web, guard, list[0])
	expect("guard removed", try, "")
	expect("the state that was cloned", state, reasonExisting)
	plugin.AddPod(try, web, pod("web"), list[0])
	expect("one like it added", try, reasonAnti)
	plugin.RemovePod(try, web, pod("web"), list[0])
	plugin.RemovePod(try, web, db, list[0])
	expect("the one to be near removed", try, reasonAffinity)
}

func TestScore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		pod  *model.PodInfo
		hard int32
		deaf bool // IgnorePreferred
		runs map[string][]*model.PodInfo
		sums []int64 // nil: nothing to score
		want []int64
	}{
		{name: "nothing said", pod: pod("web"), runs: on("a1", pod("db"))},
		{name: "nobody to like", pod: pod("web", likes("db", zone, 5)), runs: on("a1", pod("cache"))},
		{name: "likes", pod: pod("web", likes("db", zone, 5)), runs: on("a1", pod("db")), sums: []int64{5, 5, 0, 0},
			want: []int64{100, 100, 0, 0}},
		{name: "each pod counts", pod: pod("web", likes("db", host, 5)),
			runs: map[string][]*model.PodInfo{"a1": {pod("db"), pod("db")}, "b1": {pod("db")}},
			sums: []int64{10, 0, 5, 0}, want: []int64{100, 0, 50, 0}},
		{name: "shuns", pod: pod("web", shuns("db", zone, 5)), runs: on("b1", pod("db")), sums: []int64{0, 0, -5, 0},
			want: []int64{100, 100, 0, 100}},
		{name: "likes and shuns", pod: pod("web", likes("db", zone, 5), shuns("web", host, 10)),
			runs: map[string][]*model.PodInfo{"a1": {pod("db"), pod("web")}},
			sums: []int64{-5, 5, 0, 0}, want: []int64{0, 100, 50, 50}},
		{name: "is liked", pod: pod("web"), runs: on("b1", pod("db", likes("web", zone, 7))), sums: []int64{0, 0, 7, 0},
			want: []int64{0, 0, 100, 0}},
		{name: "is shunned", pod: pod("web"), runs: on("b1", pod("db", shuns("web", zone, 7))),
			sums: []int64{0, 0, -7, 0}, want: []int64{100, 100, 0, 100}},
		{name: "is required near", pod: pod("web"), hard: 3, runs: on("b1", pod("db", near("web", zone))),
			sums: []int64{0, 0, 3, 0}, want: []int64{0, 0, 100, 0}},
		{name: "is required near, of no weight", pod: pod("web"), hard: 0,
			runs: on("b1", pod("db", near("web", zone)))},
		{name: "is liked, and deaf", pod: pod("web"), hard: 3, deaf: true,
			runs: on("b1", pod("db", likes("web", zone, 7), near("web", zone)))},
		{name: "is liked, likes others and hears", pod: pod("web", likes("cache", zone, 1)), deaf: true,
			runs: on("b1", pod("db", likes("web", zone, 7))), sums: []int64{0, 0, 7, 0}, want: []int64{0, 0, 100, 0}},
		{name: "of another namespace", pod: pod("web", likes("db", zone, 5)), runs: on("a1", pod("blue/db"))},
		{name: "of a liked team", pod: pod("web", likes("team=blue/db", zone, 5)), runs: on("a1", pod("blue/db")),
			sums: []int64{5, 5, 0, 0}, want: []int64{100, 100, 0, 0}},
		{name: "cancelling out", pod: pod("web", likes("db", zone, 5)),
			runs: on("a1", pod("db", shuns("web", zone, 5))), sums: []int64{0, 0, 0, 0}, want: []int64{0, 0, 0, 0}},
	} {
		s, list := nodes(c.runs)
		plugin, state := &Plugin{Namespaces: teams{}, HardWeight: c.hard, IgnorePreferred: c.deaf},
			framework.NewCycleState()
		st := plugin.PreScore(state, c.pod, s, list)
		if st.IsSkip() != (c.sums == nil) {
			t.Errorf("%s: %+v", c.name, st)
			continue
		}
		if st.IsSkip() {
			continue
		}
		var scores []int64
		for _, n := range list {
			scores = append(scores, plugin.Score(state, c.pod, n))
		}
		if !slices.Equal(scores, c.sums) {
			t.Errorf("%s: sums %v, want %v", c.name, scores, c.sums)
		}
		plugin.NormalizeScore(state, c.pod, list, scores)
		if !slices.Equal(scores, c.want) {
			t.Errorf("%s: %v, want %v", c.name, scores, c.want)
		}
	}
}

func TestWakes(t *testing.T) {
	t.Parallel()
	plugin := &Plugin{Namespaces: teams{}}
	waits := pod("web", near("db", zone), apart("cache", zone))
	assigned := func(a clusterevent.Action, old, new any) clusterevent.Event {
		return clusterevent.Event{Kind: clusterevent.AssignedPod, Action: a, Old: old, New: new}
	}
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"the one to be near comes", assigned(clusterevent.Add, nil, pod("db")), true},
		{"the one to be near goes", assigned(clusterevent.Delete, pod("db"), nil), false},
		{"the one to be apart from goes", assigned(clusterevent.Delete, pod("cache"), nil), true},
		{"the one to be apart from comes", assigned(clusterevent.Add, nil, pod("cache")), false},
		{"one that keeps it apart goes", assigned(clusterevent.Delete, pod("guard", apart("web", zone)), nil), true},
		{"one gets the label to be near", assigned(clusterevent.UpdateLabels, pod("x"), pod("db")), true},
		{"one loses the label to be apart from", assigned(clusterevent.UpdateLabels, pod("cache"), pod("x")), true},
		{"a stranger comes", assigned(clusterevent.Add, nil, pod("x")), false},
		{"a namespace changes its labels",
			clusterevent.Event{Kind: clusterevent.Namespace, Action: clusterevent.Update}, true},
		{"a node comes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add}, true},
		{"a node changes zone", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateLabels}, true},
		{"a node grows", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateAllocatable}, false},
	} {
		got := slices.ContainsFunc(plugin.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(waits, c.e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTheFirstOfItsKind: where the last pod is gone that a pod wants to be near, it may go anywhere if it is one of
// them itself.
func TestTheFirstOfItsKind(t *testing.T) {
	t.Parallel()
	plugin := &Plugin{Namespaces: teams{}}
	for _, c := range []struct {
		name  string
		waits *model.PodInfo
		gone  string
		want  bool
	}{
		{"one of them", pod("web", near("web", zone)), "web", true},
		{"not one of them", pod("web", near("db", zone)), "db", false},
		{"one of them, but not of all", pod("web", near("web", zone), near("db", zone)), "web", false},
		{"a stranger goes", pod("web", near("web", zone)), "db", false},
		{"one of another namespace goes", pod("web", near("web", zone)), "blue/web", false},
	} {
		e := clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: pod(c.gone)}
		got := slices.ContainsFunc(plugin.EventsToRegister(), func(i clusterevent.Interest) bool {
			return i.Helps(c.waits, e)
		})
		if got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// indifferent takes the place of the tracker that a pod does not need.
type indifferent struct{ framework.Tracker }

func (indifferent) Changed(int, *model.NodeInfo) {}
func (indifferent) Begin()                       {}
func (indifferent) Filter(int) *framework.Status { return nil }
