package nodeaffinity

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func node(name string, labels map[string]string) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
}

func requirement(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

func labelled(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: r}
}

func byName(names ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{
		MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", corev1.NodeSelectorOpIn, names...)}}
}

// pod requires that one of the terms matches; without terms it requires nothing.
func pod(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
	p := &corev1.Pod{}
	if len(terms) > 0 {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	return p
}

// TestFilter: the operators of node affinity (Kubernetes documentation, "Assigning Pods to Nodes").
func TestFilter(t *testing.T) {
	t.Parallel()
	n1 := node("n1", map[string]string{"disk": "ssd", "cores": "8", "word": "many", "empty": ""})
	in, notIn, exists, absent := corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists,
		corev1.NodeSelectorOpDoesNotExist
	gt, lt := corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt
	selecting := func(selector map[string]string, terms ...corev1.NodeSelectorTerm) *corev1.Pod {
		p := pod(terms...)
		p.Spec.NodeSelector = selector
		return p
	}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		fits bool
	}{
		{"nothing asked", pod(), true},
		{"selector", selecting(map[string]string{"disk": "ssd", "cores": "8"}), true},
		{"selector, one of two", selecting(map[string]string{"disk": "ssd", "cores": "9"}), false},
		{"selector, no such label", selecting(map[string]string{"gpu": ""}), false},
		{"In", pod(labelled(requirement("disk", in, "hdd", "ssd"))), true},
		{"In, another value", pod(labelled(requirement("disk", in, "hdd"))), false},
		{"In, no such label", pod(labelled(requirement("gpu", in, "ssd"))), false},
		{"NotIn", pod(labelled(requirement("disk", notIn, "hdd"))), true},
		{"NotIn, the value", pod(labelled(requirement("disk", notIn, "hdd", "ssd"))), false},
		{"NotIn, no such label", pod(labelled(requirement("gpu", notIn, "a"))), true},
		{"Exists", pod(labelled(requirement("empty", exists))), true},
		{"Exists, no such label", pod(labelled(requirement("gpu", exists))), false},
		{"DoesNotExist", pod(labelled(requirement("gpu", absent))), true},
		{"DoesNotExist, but it does", pod(labelled(requirement("empty", absent))), false},
		{"Gt", pod(labelled(requirement("cores", gt, "7"))), true},
		{"Gt, equal", pod(labelled(requirement("cores", gt, "8"))), false},
		{"Gt, as numbers and not as text", pod(labelled(requirement("cores", gt, "10"))), false},
		{"Gt, label is no number", pod(labelled(requirement("word", gt, "0"))), false},
		{"Gt, no such label", pod(labelled(requirement("gpu", gt, "0"))), false},
		{"Lt", pod(labelled(requirement("cores", lt, "10"))), true},
		{"Lt, equal", pod(labelled(requirement("cores", lt, "8"))), false},
		{"requirements of a term are joined by and",
			pod(labelled(requirement("disk", in, "ssd"), requirement("gpu", exists))), false},
		{"terms are joined by or", pod(labelled(requirement("gpu", exists)), labelled(requirement("disk", in, "ssd"))),
			true},
		{"an empty term matches nothing", pod(labelled()), false},
		{"an empty term beside another", pod(labelled(), labelled(requirement("disk", exists))), true},
		{"selector and terms must both match",
			selecting(map[string]string{"disk": "hdd"}, labelled(requirement("cores", exists))), false},
		{"field metadata.name", pod(byName("n1")), true},
		{"field metadata.name of another", pod(byName("n2")), false},
		{"field NotIn", pod(corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", notIn, "n1")}}), false},
		{"field and label of one term",
			pod(corev1.NodeSelectorTerm{MatchFields: byName("n1").MatchFields,
				MatchExpressions: labelled(requirement("gpu", exists)).MatchExpressions}), false},
	} {
		info, state := model.NewPodInfo(c.pod), framework.NewCycleState()
		names, st := Plugin{}.PreFilter(state, info, model.NewSnapshot(n1))
		if st.IsSkip() != (c.name == "nothing asked") || !st.IsSuccess() && !st.IsSkip() {
			t.Errorf("%s: PreFilter says %+v", c.name, st)
		}
		if c.fits && names != nil && !names["n1"] {
			t.Errorf("%s: PreFilter leaves only %v", c.name, names)
		}
		for when, state := range map[string]*framework.CycleState{"prepared": state,
			"unprepared": framework.NewCycleState()} {
			st := Plugin{}.Filter(state, info, n1)
			if st.IsSuccess() != c.fits {
				t.Errorf("%s, %s: %+v, want fits %v", c.name, when, st, c.fits)
			}
			if !c.fits && (st.Code != framework.UnschedulableAndUnresolvable ||
				st.Message() != "node(s) didn't match Pod's node affinity/selector") {
				t.Errorf("%s, %s: %+v", c.name, when, st)
			}
		}
	}
}

func TestPreFilterNamesTheOnlyPossibleNodes(t *testing.T) {
	t.Parallel()
	both := corev1.NodeSelectorTerm{MatchFields: append(byName("a", "b").MatchFields, byName("b", "c").MatchFields...)}
	none := corev1.NodeSelectorTerm{MatchFields: append(byName("a").MatchFields, byName("b").MatchFields...)}
	not := corev1.NodeSelectorTerm{
		MatchFields: []corev1.NodeSelectorRequirement{requirement("metadata.name", corev1.NodeSelectorOpNotIn, "a")}}
	for _, c := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  []string
		any   bool // no node is excluded by name
		code  framework.Code
	}{
		{name: "one", terms: []corev1.NodeSelectorTerm{byName("a")}, want: []string{"a"}},
		{name: "terms add up", terms: []corev1.NodeSelectorTerm{byName("a"), byName("b")}, want: []string{"a", "b"}},
		{name: "within a term all must hold", terms: []corev1.NodeSelectorTerm{both}, want: []string{"b"}},
		{name: "a term for all",
			terms: []corev1.NodeSelectorTerm{byName("a"), labelled(requirement("disk", corev1.NodeSelectorOpExists))},
			any:   true},
		{name: "NotIn names nobody", terms: []corev1.NodeSelectorTerm{not}, any: true},
		{name: "contradiction", terms: []corev1.NodeSelectorTerm{none}, code: framework.UnschedulableAndUnresolvable},
		{name: "contradiction beside a possible one", terms: []corev1.NodeSelectorTerm{none, byName("c")},
			want: []string{"c"}},
	} {
		names, st := Plugin{}.PreFilter(framework.NewCycleState(), model.NewPodInfo(pod(c.terms...)),
			model.NewSnapshot())
		if c.code != 0 {
			if st == nil || st.Code != c.code || st.Message() != "pod affinity terms conflict" {
				t.Errorf("%s: %+v", c.name, st)
			}
			continue
		}
		if got := slices.Sorted(maps.Keys(names)); !st.IsSuccess() || (names == nil) != c.any ||
			!slices.Equal(got, c.want) {
			t.Errorf("%s: %v %+v, want %v", c.name, got, st, c.want)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	preferring := func(terms ...corev1.PreferredSchedulingTerm) *model.PodInfo {
		p := &corev1.Pod{}
		p.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
		return model.NewPodInfo(p)
	}
	ssd := corev1.PreferredSchedulingTerm{Weight: 30,
		Preference: labelled(requirement("disk", corev1.NodeSelectorOpIn, "ssd"))}
	zone := corev1.PreferredSchedulingTerm{Weight: 10,
		Preference: labelled(requirement("zone", corev1.NodeSelectorOpExists))}
	nodes := []*model.NodeInfo{
		node("both", map[string]string{"disk": "ssd", "zone": "a"}), node("zoned", map[string]string{"zone": "a"}),
		node("none", nil),
	}
	state, p := framework.NewCycleState(), preferring(ssd, zone, corev1.PreferredSchedulingTerm{Weight: 50})
	if st := (Plugin{}).PreScore(state, p, model.NewSnapshot(nodes...), nodes); !st.IsSuccess() {
		t.Fatalf("PreScore: %+v", st)
	}
	var scores []int64
	for _, n := range nodes {
		scores = append(scores, Plugin{}.Score(state, p, n))
	}
	if want := []int64{40, 10, 0}; !slices.Equal(scores, want) {
		t.Errorf("scores %v, want %v: an empty preference prefers nothing", scores, want)
	}
	Plugin{}.NormalizeScore(state, p, nodes, scores)
	if want := []int64{100, 25, 0}; !slices.Equal(scores, want) {
		t.Errorf("normalized %v, want %v", scores, want)
	}

	if st := (Plugin{}).PreScore(framework.NewCycleState(), preferring(), nil, nil); !st.IsSkip() {
		t.Errorf("nothing preferred: %+v, want Skip", st)
	}
	broken := preferring(corev1.PreferredSchedulingTerm{Weight: 1,
		Preference: labelled(requirement("disk", "Near", "ssd"))})
	if st := (Plugin{}).PreScore(framework.NewCycleState(), broken, nil, nil); st == nil || st.Code != framework.Error {
		t.Errorf("an operator that does not exist: %+v, want an error", st)
	}
}

func TestOnlyMatchingNodesWake(t *testing.T) {
	t.Parallel()
	waits := model.NewPodInfo(pod(labelled(requirement("disk", corev1.NodeSelectorOpIn, "ssd"))))
	for _, c := range []struct {
		name   string
		action clusterevent.Action
		disk   string
		want   bool
	}{
		{"matching node comes", clusterevent.Add, "ssd", true},
		{"another comes", clusterevent.Add, "hdd", false},
		{"node becomes matching", clusterevent.UpdateLabels, "ssd", true},
		{"taints of a matching node", clusterevent.UpdateTaints, "ssd", false},
	} {
		e := clusterevent.Event{Kind: clusterevent.Node, Action: c.action,
			New: node("n", map[string]string{"disk": c.disk}).Node}
		if got := Plugin.EventsToRegister(Plugin{})[0].Helps(waits, e); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestOnlyTheNamedNodeWakes(t *testing.T) {
	t.Parallel()
	only := func(name string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}}}
	}
	comes := clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add,
		New: node("n", map[string]string{"disk": "ssd"}).Node}
	for _, c := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  bool
	}{
		{"the node itself", []corev1.NodeSelectorTerm{only("n")}, true},
		{"another", []corev1.NodeSelectorTerm{only("m")}, false},
		{"one of two", []corev1.NodeSelectorTerm{only("m"), only("n")}, true},
		{"another, or any with a label",
			[]corev1.NodeSelectorTerm{only("m"), labelled(requirement("disk", corev1.NodeSelectorOpIn, "ssd"))}, true},
	} {
		if got := (Plugin{}).EventsToRegister()[0].Helps(model.NewPodInfo(pod(c.terms...)), comes); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestAddedAffinity: a profile's own rules hold for every pod, besides the pod's.
func TestAddedAffinity(t *testing.T) {
	t.Parallel()
	selector, err := nodeaffinity.NewNodeSelector(
		&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
			labelled(requirement("disk", corev1.NodeSelectorOpIn, "ssd"))}})
	if err != nil {
		t.Fatal(err)
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(
		[]corev1.PreferredSchedulingTerm{
			{Weight: 7, Preference: labelled(requirement("disk", corev1.NodeSelectorOpIn, "ssd"))}})
	if err != nil {
		t.Fatal(err)
	}
	p, info, state := Plugin{Required: selector, Preferred: terms}, model.NewPodInfo(pod()), framework.NewCycleState()
	if _, st := p.PreFilter(state, info, nil); st.IsSkip() {
		t.Error("a pod without rules is not filtered")
	}
	if st := p.PreScore(state, info, nil, nil); st.IsSkip() {
		t.Error("a pod without preferences is not scored")
	}
	fast, slow := node("a", map[string]string{"disk": "ssd"}), node("b", map[string]string{"disk": "hdd"})
	if st := p.Filter(state, info, slow); st.Message() != reasonEnforced || !p.Filter(state, info, fast).IsSuccess() {
		t.Errorf("%+v, want %q", st, reasonEnforced)
	}
	if a, b := p.Score(state, info, fast), p.Score(state, info, slow); a != 7 || b != 0 {
		t.Errorf("scores %d and %d", a, b)
	}
	if p.EventsToRegister()[0].Helps(info,
		clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add, New: slow.Node}) {
		t.Error("a node that the rules do not match wakes the pod")
	}
}
