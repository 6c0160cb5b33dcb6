package podtopologyspread

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

const zone, host = corev1.LabelTopologyZone, corev1.LabelHostname

// node reads "a1 zone=a web web db": its name, its zone ("" for none), and the app labels of its pods; "-web" is being
// deleted, "other/web" in another namespace. "tainted" taints it, "disk=ssd" labels it.
func node(text string) *model.NodeInfo {
	words := strings.Fields(text)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: words[0], Labels: map[string]string{host: words[0]}}}
	info := model.NewNodeInfo(n)
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		switch {
		case key == "zone":
			n.Labels[zone] = value
		case ok:
			n.Labels[key] = value
		case w == "tainted":
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		default:
			info.AddPod(running(w))
		}
	}
	return info
}

func running(word string) *model.PodInfo {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}
	if ns, app, ok := strings.Cut(word, "/"); ok {
		p.Namespace, word = ns, app
	}
	if app, ok := strings.CutPrefix(word, "-"); ok {
		p.DeletionTimestamp, word = &metav1.Time{Time: time.Unix(1, 0)}, app
	}
	p.Labels = map[string]string{"app": word}
	return model.NewPodInfo(p)
}

func web() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
}

func hard(key string, skew int32) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: web()}
}

func soft(key string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: web()}
}

// with changes a constraint.
func with(c corev1.TopologySpreadConstraint,
	change func(*corev1.TopologySpreadConstraint)) corev1.TopologySpreadConstraint {
	change(&c)
	return c
}

func pod(list ...corev1.TopologySpreadConstraint) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
		Labels: map[string]string{"app": "web", "version": "2"}}, Spec: corev1.PodSpec{TopologySpreadConstraints: list}}
}

func cluster(lines ...string) (*model.Snapshot, []*model.NodeInfo) {
	var nodes []*model.NodeInfo
	for _, l := range lines {
		nodes = append(nodes, node(l))
	}
	return model.NewSnapshot(nodes...), nodes
}

// fits returns the names of the nodes that pass the filter, and checks that the tracker says the same.
func fits(t *testing.T, p *corev1.Pod, s *model.Snapshot, nodes []*model.NodeInfo) (names []string,
	reasons map[string]string) {
	t.Helper()
	plugin, state, info := &Plugin{}, framework.NewCycleState(), model.NewPodInfo(p)
	if _, st := plugin.PreFilter(state, info, s); !st.IsSuccess() {
		t.Fatalf("PreFilter: %+v", st)
	}
	newTracker := plugin.Track(info, s, nil).New
	if newTracker == nil {
		newTracker = func() framework.Tracker { return indifferent{} }
	}
	tracker := newTracker()
	for slot, n := range nodes {
		tracker.Changed(slot, n)
	}
	tracker.Begin()
	reasons = map[string]string{}
	for slot, n := range nodes {
		st := plugin.Filter(state, info, n)
		if st.IsSuccess() {
			names = append(names, n.Name())
		} else {
			reasons[n.Name()] = fmt.Sprint(st.Code, " ", st.Message())
		}
		if tracked := tracker.Filter(slot); tracked.Message() != st.Message() {
			t.Errorf("node %s: %+v, by the tracker %+v", n.Name(), st, tracked)
		}
	}
	return names, reasons
}

// TestFilter: skew is the matching pods of a domain, with the pod, less those of the emptiest domain (Kubernetes
// documentation, "Pod Topology Spread Constraints").
func TestFilter(t *testing.T) {
	t.Parallel()
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	three, four := int32(3), int32(4)
	db := pod(hard(zone, 1))
	db.Labels = map[string]string{"app": "db"}
	ssd := func(c corev1.TopologySpreadConstraint) *corev1.Pod {
		p := pod(c)
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		return p
	}
	tolerating := pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor }))
	tolerating.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	for _, c := range []struct {
		name  string
		pod   *corev1.Pod
		nodes []string
		want  string
	}{
		{"all alike", pod(hard(zone, 1)), []string{"a1 zone=a web", "a2 zone=a", "b1 zone=b web"}, "a1 a2 b1"},
		{"one zone ahead", pod(hard(zone, 1)), []string{"a1 zone=a web", "a2 zone=a", "b1 zone=b"}, "b1"},
		{"two may be ahead", pod(hard(zone, 2)), []string{"a1 zone=a web", "a2 zone=a", "b1 zone=b"}, "a1 a2 b1"},
		{"by node", pod(hard(host, 1)), []string{"a1 zone=a web", "a2 zone=a", "b1 zone=b"}, "a2 b1"},
		{"a pod that does not count itself", db, []string{"a1 zone=a web", "b1 zone=b"}, "a1 b1"},
		{"pods of other apps and namespaces do not count", pod(hard(zone, 1)),
			[]string{"a1 zone=a db other/web", "b1 zone=b"}, "a1 b1"},
		{"pods on their way out do not count", pod(hard(zone, 1)), []string{"a1 zone=a -web", "b1 zone=b"}, "a1 b1"},
		{"both constraints", pod(hard(zone, 1), hard(host, 1)),
			[]string{"a1 zone=a web", "a2 zone=a", "b1 zone=b web", "b2 zone=b"}, "a2 b2"},
		{"zones and nodes pull apart", pod(hard(zone, 1), hard(host, 1)),
			[]string{"a1 zone=a", "a2 zone=a web web", "b1 zone=b web"}, ""},
		{"nodes without the key are out, their pods do not count", pod(hard(zone, 1)),
			[]string{"a1 zone=a web", "b1 zone=b web", "x web"}, "a1 b1"},
		{"a node must be in a domain of each key to count", pod(hard(zone, 1), hard("rack", 1)),
			[]string{"a1 zone=a web", "b1 zone=b rack=1", "a2 zone=a rack=2"}, "b1 a2"},
		{"too few domains: the emptiest counts as empty",
			pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
				c.MinDomains = &three
			})), []string{"a1 zone=a web", "b1 zone=b web"}, ""},
		{"too few domains, but one is free", pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
			c.MinDomains = &four
		})), []string{"a1 zone=a web", "b1 zone=b", "c1 zone=c web"}, "b1"},
		{"just enough domains", pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
			c.MinDomains = &three
		})), []string{"a1 zone=a web", "b1 zone=b web", "c1 zone=c web"}, "a1 b1 c1"},
		{"zones that the pod cannot use do not count", ssd(hard(zone, 1)),
			[]string{"a1 zone=a disk=ssd web", "b1 zone=b disk=hdd"}, "a1 b1"},
		{"they do if affinity is ignored", ssd(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
			c.NodeAffinityPolicy = &ignore
		})), []string{"a1 zone=a disk=ssd web", "b1 zone=b disk=hdd"}, "b1"},
		{"tainted zones count", pod(hard(zone, 1)), []string{"a1 zone=a web", "b1 zone=b tainted"}, "b1"},
		{"they do not if taints are honored", pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
			c.NodeTaintsPolicy = &honor
		})), []string{"a1 zone=a web", "b1 zone=b tainted"}, "a1 b1"},
		{"unless tolerated", tolerating, []string{"a1 zone=a web", "b1 zone=b tainted"}, "b1"},
		{"an empty selector counts no pod but the pod itself",
			pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
				c.LabelSelector = &metav1.LabelSelector{}
			})), []string{"a1 zone=a web web web", "b1 zone=b"}, "a1 b1"},
		{"no selector counts nothing", pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector = nil
		})), []string{"a1 zone=a web web web", "b1 zone=b"}, "a1 b1"},
		{"matchLabelKeys: pods of another version do not count",
			pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
				c.MatchLabelKeys = []string{"version", "absent"}
			})),
			[]string{"a1 zone=a web web", "b1 zone=b"}, "a1 b1"},
	} {
		s, nodes := cluster(c.nodes...)
		if got, reasons := fits(t, c.pod, s, nodes); strings.Join(got, " ") != c.want {
			t.Errorf("%s: fits %v, want %q; %v", c.name, got, c.want, reasons)
		}
	}

	s, nodes := cluster("a1 zone=a web", "b1 zone=b", "x")
	want := map[string]string{
		"a1": "Unschedulable node(s) didn't match pod topology spread constraints",
		"x":  "UnschedulableAndUnresolvable node(s) didn't match pod topology spread constraints (missing required label)",
	}
	if _, got := fits(t, pod(hard(zone, 1)), s, nodes); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("reasons %v, want %v", got, want)
	}
}

func TestPreFilterSkipsAndRefuses(t *testing.T) {
	t.Parallel()
	s, _ := cluster("a1 zone=a")
	bad := pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}}
	}))
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want framework.Code
	}{"no constraint": {pod(), framework.Skip}, "only soft": {pod(soft(zone)), framework.Skip}} {
		if _, st := (&Plugin{}).PreFilter(framework.NewCycleState(), model.NewPodInfo(c.pod), s); st == nil ||
			st.Code != c.want {
			t.Errorf("%s: %+v, want code %d", name, st, c.want)
		}
	}
	if model.NewPodInfo(bad).Err == nil {
		t.Error("a pod with a constraint that cannot be read would be scheduled")
	}
}

// TestWhoSharesATracker: pods of the same constraints and namespace, whatever else their labels are; node rules and
// tolerations count only where a constraint honors them.
func TestWhoSharesATracker(t *testing.T) {
	t.Parallel()
	honor, ignore := corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore
	key := func(p *corev1.Pod, change ...func(*corev1.Pod)) string {
		for _, c := range change {
			c(p)
		}
		tracked := (&Plugin{}).Track(model.NewPodInfo(p), nil, nil)
		if tracked.New == nil {
			t.Fatal("no tracker")
		}
		return tracked.Key
	}
	label := func(k, v string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels[k] = v } }
	ssd := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}} }
	byVersion := with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
		c.MatchLabelKeys = []string{"version"}
	})
	anywhere := with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = &ignore })
	untainted := with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) { c.NodeTaintsPolicy = &honor })
	for _, c := range []struct {
		name string
		a, b string
		same bool
	}{
		{"pods of a StatefulSet", key(pod(hard(zone, 1)), label("index", "0")),
			key(pod(hard(zone, 1)), label("index", "1")), true},
		{"another namespace", key(pod(hard(zone, 1))), key(pod(hard(zone, 1)), func(p *corev1.Pod) {
			p.Namespace = "other"
		}), false},
		{"not counted itself", key(pod(hard(zone, 1))), key(pod(hard(zone, 1)), label("app", "db")), false},
		{"not counted itself, which scores do not ask for", key(pod(soft(zone))),
			key(pod(soft(zone)), label("app", "db")), true},
		{"another key", key(pod(hard(zone, 1))), key(pod(hard(host, 1))), false},
		{"another skew", key(pod(hard(zone, 1))), key(pod(hard(zone, 2))), false},
		{"soft", key(pod(hard(zone, 1))), key(pod(soft(zone))), false},
		{"another version, by matchLabelKeys", key(pod(byVersion)), key(pod(byVersion), label("version", "3")), false},
		{"another version", key(pod(hard(zone, 1))), key(pod(hard(zone, 1)), label("version", "3")), true},
		{"other nodes are eligible", key(pod(hard(zone, 1))), key(pod(hard(zone, 1)), ssd), false},
		{"all nodes are counted", key(pod(anywhere)), key(pod(anywhere), ssd), true},
		{"tolerations", key(pod(hard(zone, 1))), key(pod(hard(zone, 1)), tolerant), true},
		{"tolerations where taints are honored", key(pod(untainted)), key(pod(untainted), tolerant), false},
	} {
		if (c.a == c.b) != c.same {
			t.Errorf("%s: the keys are the same: %v", c.name, c.a == c.b)
		}
	}
}

// TestPreemptionsDryRun: AddPod and RemovePod must leave what PreFilter would have counted.
func TestPreemptionsDryRun(t *testing.T) {
	t.Parallel()
	s, nodes := cluster("a1 zone=a web", "b1 zone=b", "x web")
	p, plugin, state := model.NewPodInfo(pod(hard(zone, 1))), &Plugin{}, framework.NewCycleState()
	if _, st := plugin.PreFilter(state, p, s); !st.IsSuccess() {
		t.Fatal(st)
	}
	expect := func(step string, state *framework.CycleState, want bool) {
		t.Helper()
		if st := plugin.Filter(state, p, nodes[0]); st.IsSuccess() != want {
			t.Errorf("%s: %+v, want fits %v", step, st, want)
		}
	}
	expect("one in zone a", state, false)
	try := state.Clone()
	plugin.RemovePod(try, p, nodes[0].Pods[0], nodes[0])
	expect("its pod removed", try, true)
	expect("the state that was cloned", state, false)
	plugin.AddPod(try, p, running("web"), nodes[0])
	expect("another one in its place", try, false)
	for _, word := range []string{"db", "other/web", "-web"} {
		plugin.AddPod(try, p, running(word), nodes[1])
	}
	plugin.AddPod(try, p, running("web"), nodes[2])
	expect("pods that do not count elsewhere", try, false)
	plugin.AddPod(try, p, running("web"), nodes[1])
	expect("one in zone b too", try, true)
	plugin.RemovePod(try, p, nodes[2].Pods[0], nodes[2])
	expect("one removed that is in no zone", try, true)

	any := model.NewPodInfo(pod(with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{}
	})))
	if _, st := plugin.PreFilter(state, any, s); !st.IsSuccess() {
		t.Fatal(st)
	}
	plugin.AddPod(state, any, running("web"), nodes[0])
	if st := plugin.Filter(state, any, nodes[0]); !st.IsSuccess() {
		t.Errorf("an empty selector counts no pods, added ones neither: %+v", st)
	}
}

func TestMatchLabelKeysNarrowTheSelector(t *testing.T) {
	t.Parallel()
	in := with(hard(zone, 1), func(c *corev1.TopologySpreadConstraint) {
		c.MatchLabelKeys = []string{"version", "absent"}
	})
	if p := model.NewPodInfo(pod(in)); p.Err != nil || p.Spread[0].Selector.String() != "app=web,version=2" {
		t.Errorf("%+v, %v", p.Spread, p.Err)
	}
}

// selects spreads all web pods by default.
type selects struct{}

func (selects) SelectorFor(pod *corev1.Pod) labels.Selector {
	if pod.Labels["app"] != "web" {
		return nil
	}
	return labels.SelectorFromSet(labels.Set{"app": "web"})
}

// TestConstraintsOfTheConfiguration: pods without constraints have those that the plug-in is given, for the pods of
// their workload.
func TestConstraintsOfTheConfiguration(t *testing.T) {
	t.Parallel()
	stranger := pod()
	stranger.Labels = nil
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{{"of a workload", pod(), "b1"}, {"of none", stranger, "a1 b1"}, {"with its own", pod(soft(zone)), "a1 b1"}} {
		s, nodes := cluster("a1 zone=a web", "b1 zone=b")
		var names []string
		plugin := &Plugin{Workloads: selects{},
			Defaults: []corev1.TopologySpreadConstraint{
				{TopologyKey: zone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}}
		state, info := framework.NewCycleState(), model.NewPodInfo(c.pod)
		_, st := plugin.PreFilter(state, info, s)
		for _, n := range nodes {
			if st.IsSkip() || plugin.Filter(state, info, n).IsSuccess() {
				names = append(names, n.Name())
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		track := plugin.Track(info, s, nil)
		if hard := track.New != nil && !track.ScoresOnly; hard != (c.want == "b1") {
			t.Errorf("%s: tracked %+v", c.name, track)
		}
	}
}

func TestScore(t *testing.T) {
	t.Parallel()
	stranger := pod()
	stranger.Labels = nil
	for _, c := range []struct {
		name  string
		pod   *corev1.Pod
		nodes []string
		want  []int64 // nil: nothing to score
	}{
		{"nothing said, no workload", stranger, []string{"a1 zone=a web"}, nil},
		{"only hard ones", pod(hard(zone, 1)), []string{"a1 zone=a web"}, nil},
		{"empty everywhere", pod(soft(zone)), []string{"a1 zone=a", "b1 zone=b"}, []int64{100, 100}},
		// The sum of a zone is its pods times ln(2 zones + 2) = 1.39, rounded: 3, 1, 0.
		{"fewer is better", pod(soft(zone)), []string{"a1 zone=a web web", "a2 zone=a", "b1 zone=b web"},
			[]int64{33, 33, 100}},
		{"an empty domain is best", pod(soft(zone)), []string{"a1 zone=a web web", "b1 zone=b"}, []int64{0, 100}},
		{"by node", pod(soft(host)), []string{"a1 zone=a web web", "a2 zone=a", "b1 zone=b web"}, []int64{0, 100, 33}},
		{"a node without the key is last", pod(soft(zone)), []string{"a1 zone=a web", "b1 zone=b", "x"},
			[]int64{0, 100, 0}},
		{"others do not count", pod(soft(zone)), []string{"a1 zone=a -web other/web db", "b1 zone=b web"},
			[]int64{100, 0}},
		// By default nodes (skew 3, weight ln 6) and zones (skew 5, weight ln 4) count, and a node without a zone stays
		// in: 9, 7, 6, 4.
		{"by default", pod(), []string{"a1 zone=a web", "a2 zone=a", "b1 zone=b", "x web"}, []int64{44, 66, 77, 100}},
	} {
		s, nodes := cluster(c.nodes...)
		plugin, state, info := &Plugin{Workloads: selects{}}, framework.NewCycleState(), model.NewPodInfo(c.pod)
		st := plugin.PreScore(state, info, s, nodes)
		if st.IsSkip() != (c.want == nil) {
			t.Errorf("%s: %+v", c.name, st)
			continue
		}
		if st.IsSkip() {
			continue
		}
		var scores []int64
		for _, n := range nodes {
			scores = append(scores, plugin.Score(state, info, n))
		}
		raw := slices.Clone(scores)
		plugin.NormalizeScore(state, info, nodes, scores)
		if !slices.Equal(scores, c.want) {
			t.Errorf("%s: %v (sums %v), want %v", c.name, scores, raw, c.want)
		}
	}
}

// TestWakes: pods with constraints of their own and those that have the configuration's are woken alike.
func TestWakes(t *testing.T) {
	t.Parallel()
	plugin := &Plugin{Workloads: selects{},
		Defaults: []corev1.TopologySpreadConstraint{
			{TopologyKey: zone, MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule}}}
	assigned := func(a clusterevent.Action, old, new *model.PodInfo) clusterevent.Event {
		e := clusterevent.Event{Kind: clusterevent.AssignedPod, Action: a}
		if old != nil {
			e.Old = old
		}
		if new != nil {
			e.New = new
		}
		return e
	}
	for _, c := range []struct {
		name string
		e    clusterevent.Event
		want bool
	}{
		{"a pod that counts comes", assigned(clusterevent.Add, nil, running("web")), true},
		{"a pod that counts goes", assigned(clusterevent.Delete, running("web"), nil), true},
		{"another comes", assigned(clusterevent.Add, nil, running("db")), false},
		{"one of another namespace", assigned(clusterevent.Add, nil, running("other/web")), false},
		{"a pod stops counting", assigned(clusterevent.UpdateLabels, running("web"), running("db")), true},
		{"a pod is being deleted", assigned(clusterevent.UpdateOther, running("web"), running("-web")), true},
		{"a domain comes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Add}, true},
		{"a domain goes", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.Delete}, true},
		{"a node grows", clusterevent.Event{Kind: clusterevent.Node, Action: clusterevent.UpdateAllocatable}, false},
	} {
		for whose, p := range map[string]*corev1.Pod{"its own": pod(hard(zone, 1)), "the configuration's": pod()} {
			got := slices.ContainsFunc(plugin.EventsToRegister(), func(i clusterevent.Interest) bool {
				return i.Helps(model.NewPodInfo(p), c.e)
			})
			if got != c.want {
				t.Errorf("%s, constraint %s: %v, want %v", c.name, whose, got, c.want)
			}
		}
	}
}

// indifferent takes the place of the tracker that a pod does not need.
type indifferent struct{ framework.Tracker }

func (indifferent) Changed(int, *model.NodeInfo) {}
func (indifferent) Begin()                       {}
func (indifferent) Filter(int) *framework.Status { return nil }
