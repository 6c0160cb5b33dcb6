package framework

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// fullPod uses every field that decisions read.
func fullPod() *corev1.Pod {
	term := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"disk": "ssd"},
			Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpEqual, Value: "v", Effect: corev1.TaintEffectNoSchedule}},
			Affinity: &corev1.Affinity{
				NodeAffinity:    &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}},
				PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
				PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
			},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone"}},
			InitContainers:            []corev1.Container{{Name: "i", Image: "init:1"}},
			Containers: []corev1.Container{{Name: "c", Image: "web:1", Ports: []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1")}}}},
		},
	}
}

func TestMessage(t *testing.T) {
	t.Parallel()
	snapshot := NewSnapshot(named("n1"), named("n2"), named("n3"))
	d := NewDiagnosis(snapshot)
	shared := &Status{Code: Unschedulable, Reasons: []string{"Insufficient memory", "Insufficient cpu"}, Plugin: "Fit"}
	d.Reject(snapshot.Get("n1"), shared)
	d.Reject(snapshot.Get("n2"), shared)
	d.Reject(snapshot.Get("n3"), &Status{Code: UnschedulableAndUnresolvable, Reasons: []string{"node(s) were unschedulable"}, Plugin: "Cordon"})
	const want = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, 2 Insufficient memory."
	if got := d.Message(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.PostFilter = "preemption: nobody."
	if got := (&FitError{Diagnosis: d}).Error(); got != want+" preemption: nobody." {
		t.Errorf("with preemption: %q", got)
	}
	if got := slices.Sorted(maps.Keys(d.Plugins)); !slices.Equal(got, []string{"Cordon", "Fit"}) {
		t.Errorf("plug-ins %v", got)
	}
	d.PreFilter = "node(s) didn't satisfy plugin A"
	if got := d.Message(); got != "0/3 nodes are available: node(s) didn't satisfy plugin A. preemption: nobody." {
		t.Errorf("refused as a whole: %q", got)
	}
	if got := NewDiagnosis(NewSnapshot()).Message(); got != "no nodes available to schedule pods" {
		t.Errorf("empty cluster: %q", got)
	}
}

// TestARefusalByEveryNodeIsOneList: pods that fit nowhere are tried again and again, so what a diagnosis allocates must not grow
// in number with the nodes.
func TestARefusalByEveryNodeIsOneList(t *testing.T) { // not parallel: it counts allocations
	allocations := func(count int) float64 {
		var nodes []*NodeInfo
		for i := range count {
			nodes = append(nodes, named(fmt.Sprint("n", i)))
		}
		snapshot, full := NewSnapshot(nodes...), &Status{Code: Unschedulable, Reasons: []string{"full"}, Plugin: "Fit"}
		return testing.AllocsPerRun(5, func() {
			d := NewDiagnosis(snapshot)
			for _, n := range nodes {
				d.Reject(n, full)
			}
			if got := d.Counts(); got["full"] != count {
				t.Errorf("%d nodes counted as %v", count, got)
			}
		})
	}
	if few, many := allocations(50), allocations(5000); many > few {
		t.Errorf("%v allocations for 5000 nodes, %v for 50", many, few)
	}
}

func TestCompactKeepsTheMessageOfAllNodes(t *testing.T) {
	t.Parallel()
	var nodes []*NodeInfo
	for i := range keepNodes + 5 {
		nodes = append(nodes, named(strings.Repeat("n", i+1)))
	}
	d := NewDiagnosis(NewSnapshot(nodes...))
	for _, n := range nodes {
		d.Reject(n, NewStatus(Unschedulable, "full"))
	}
	want := d.Message()
	d.Compact()
	if d.Message() != want || !strings.Contains(want, "105 full") {
		t.Errorf("%q, before %q", d.Message(), want)
	}
	if len(maps.Collect(d.Statuses)) != keepNodes || d.Snapshot != nil {
		t.Errorf("still keeps %d nodes and the snapshot %v", len(maps.Collect(d.Statuses)), d.Snapshot)
	}
}

// TestNodeInfoCountsBackAndForth: pods come and go at random; the sums must be those of the pods that are there.
func TestNodeInfoCountsBackAndForth(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	node := named("n").Node
	n := NewNodeInfo(node)
	var there []*PodInfo
	for i := range 300 {
		if len(there) > 0 && r.IntN(2) == 0 {
			k := r.IntN(len(there))
			if !n.RemovePod(there[k].Pod) {
				t.Fatal("the pod was not there")
			}
			there = slices.Delete(there, k, k+1)
		} else {
			p := fullPod()
			p.UID = types.UID(strings.Repeat("u", i+1))
			if r.IntN(2) == 0 {
				p.Spec.Affinity = nil
			}
			p.Spec.Containers[0].Ports[0].HostPort = int32(r.IntN(4))
			info := NewPodInfo(p)
			n.AddPod(info)
			there = append(there, info)
		}
		want := NewNodeInfo(node, there...)
		if !n.Requested.Equal(&want.Requested) && len(there) > 0 || n.NonZero.MilliCPU != want.NonZero.MilliCPU {
			t.Fatalf("step %d: requested %+v, want %+v", i, n.Requested, want.Requested)
		}
		if !maps.Equal(n.Ports, want.Ports) || len(n.Pods) != len(there) || len(n.WithTerms) != len(want.WithTerms) || len(n.WithAntiAffinity) != len(want.WithAntiAffinity) {
			t.Fatalf("step %d: %+v, want %+v", i, n, want)
		}
	}
	if n.RemovePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "stranger"}}) {
		t.Error("a pod that was never there was removed")
	}
}

func TestClonesAreApart(t *testing.T) {
	t.Parallel()
	p, q := NewPodInfo(fullPod()), fullPod()
	q.UID, q.Spec.Containers[0].Ports[0].HostPort = "v", 81
	second := NewPodInfo(q)
	n := NewNodeInfo(named("n").Node, p, second)
	want := NewNodeInfo(n.Node, p, second)
	for name, change := range map[string]func(*NodeInfo){"added to": func(c *NodeInfo) { c.AddPod(podOf("w")); c.AddPod(p) }, "taken from": func(c *NodeInfo) { c.RemovePod(p.Pod) }} {
		change(n.Clone())
		if !slices.Equal(n.Pods, want.Pods) || !slices.Equal(n.WithTerms, want.WithTerms) || !slices.Equal(n.WithAntiAffinity, want.WithAntiAffinity) ||
			!maps.Equal(n.Ports, want.Ports) || !n.Requested.Equal(&want.Requested) || !n.NonZero.Equal(&want.NonZero) {
			t.Errorf("the clone was %s a pod, and the node became %+v", name, n)
		}
	}
	same := *p
	n.ReplacePod(&same)
	if n.Pods[0] != &same || n.WithTerms[0] != &same || n.WithAntiAffinity[0] != &same {
		t.Error("ReplacePod left the old pod in a list")
	}
	s := NewCycleState()
	s.Write("counter", counter{7})
	s.Write("plain", "x")
	for _, name := range []string{"A", "D", "E"} {
		s.SkipFilter(name)
	}
	clone := s.Clone()
	clone.SkipFilter("B")
	s.SkipFilter("C")
	clone.Write("plain", "y")
	if clone.Read("counter") != (counter{8}) || s.Read("plain") != "x" || !clone.SkipsFilter("A") || !clone.SkipsFilter("B") || s.SkipsFilter("B") || s.Read("nothing") != nil {
		t.Errorf("state %+v, clone %+v", s, clone)
	}
}

// counter shows by its number that it was cloned.
type counter struct{ n int }

func (c counter) CloneState() any { return counter{c.n + 1} }

func TestSnapshotKeepsItsCounts(t *testing.T) {
	t.Parallel()
	near := NewPodInfo(fullPod())
	s := NewSnapshot(NewNodeInfo(named("a").Node, near), named("b"))
	s.Set(4, named("c"))
	s.Set(0, named("d")) // a is gone, d has its slot
	s.Set(1, nil)
	var got []string
	for n := range s.All {
		got = append(got, n.Name())
	}
	if !slices.Equal(got, []string{"d", "c"}) || s.Count != 2 || s.WithTerms != 0 || s.Get("a") != nil || s.Get("b") != nil || s.Get("c") == nil {
		t.Errorf("nodes %v, count %d, with terms %d", got, s.Count, s.WithTerms)
	}
	for n := range s.All {
		if n.Name() != "d" {
			t.Error("went on after the end")
		}
		break
	}
}

func TestNominator(t *testing.T) {
	t.Parallel()
	pod := func(uid string, priority int32) *PodInfo {
		p := podOf(uid)
		p.Pod.Spec.Priority = &priority
		return p
	}
	names := func(list []*PodInfo) string {
		var out []string
		for _, p := range list {
			out = append(out, p.Pod.Name)
		}
		slices.Sort(out)
		return strings.Join(out, " ")
	}
	low, mid, high := pod("low", 1), pod("mid", 5), pod("high", 9)
	n := NewNominator()
	if n.Rivals(mid) != nil || n.Of("mid") != "" {
		t.Error("an empty nominator knows nodes")
	}
	for _, p := range []*PodInfo{low, mid, high} {
		n.Set(p, "n1")
	}
	equal := pod("equal", 5)
	if got := names(n.On("n1", equal)); got != "high mid" {
		t.Errorf("not lower than 5: %s", got)
	}
	if got := names(n.On("n1", mid)); got != "high" {
		t.Errorf("a pod does not stand in its own way: %s", got)
	}
	if got := names(n.Below("n1", equal)); got != "low" {
		t.Errorf("lower than 5: %s", got)
	}
	n.Set(mid, "n2")
	if n.Of("mid") != "n2" || names(n.On("n1", equal)) != "high" || names(n.On("n2", equal)) != "mid" {
		t.Errorf("moved to n2: it is %s, on n1 %s, on n2 %s", n.Of("mid"), names(n.On("n1", equal)), names(n.On("n2", equal)))
	}
	if got := slices.Sorted(maps.Keys(n.Rivals(equal))); !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("nodes in question: %v", got)
	}
	n.Set(mid, "")
	if n.Of("mid") != "" || len(n.Rivals(equal)) != 1 || len(n.Rivals(equal)["n1"]) != 1 {
		t.Errorf("taken back: still %s, nodes %v", n.Of("mid"), n.Rivals(equal))
	}
}

func TestTermsThatCannotBeReadAreReported(t *testing.T) {
	t.Parallel()
	p := fullPod()
	p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	info := NewPodInfo(p)
	if info.Err == nil || !strings.Contains(info.Err.Error(), "pod ns/p") {
		t.Errorf("error %v, want one that names the pod", info.Err)
	}
	if info.Terms.Affinity[0].Matches(p, nil) {
		t.Error("a term that cannot be read matches something")
	}
	if err := NewPodInfo(fullPod()).Err; err != nil {
		t.Errorf("a good pod: %v", err)
	}
	weightless := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{}}}}}}
	if NewPodInfo(weightless).HasTerms() {
		t.Error("a preference without weight counts as a term")
	}
}

func TestCountMatching(t *testing.T) {
	t.Parallel()
	pod := func(ns, app string, leaving bool) *PodInfo {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Labels: map[string]string{"app": app}}}
		if leaving {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		return NewPodInfo(p)
	}
	pods := []*PodInfo{pod("ns", "web", false), pod("ns", "web", false), pod("ns", "web", true), pod("ns", "db", false), pod("other", "web", false)}
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	if got := CountMatching(pods, "ns", web); got != 2 {
		t.Errorf("%d, want the two of the namespace that stay", got)
	}
	if got := CountMatching(pods, "ns", labels.Everything()); got != 0 {
		t.Errorf("an empty selector counts %d", got)
	}
}

// TestTermsAbout: the terms of the pods on nodes, alike ones once, and no more than keepDead of those whose pods are gone.
func TestTermsAbout(t *testing.T) {
	t.Parallel()
	apart := func(name, app string) *PodInfo {
		return NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: types.UID(name)}, Spec: corev1.PodSpec{Affinity: &corev1.Affinity{
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}}})
	}
	s := NewSnapshot(named("n1"), named("n2"))
	about := func(app string) int {
		n := 0
		s.TermsAbout(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": app}}}, nil, func(string) { n++ })
		return n
	}
	for _, slot := range []int{0, 1} {
		n := named(fmt.Sprint("n", slot+1))
		n.AddPod(apart(fmt.Sprint("a", slot), "web"))
		s.Set(slot, n)
	}
	if got := about("web"); got != 1 {
		t.Errorf("%d terms about web, want 1: both pods have the same", got)
	}
	if got := about("db"); got != 0 {
		t.Errorf("%d terms about db", got)
	}
	for i := range 3 * keepDead {
		n := named("n1")
		n.AddPod(apart("x", fmt.Sprint("app", i)))
		s.Set(0, n)
	}
	if got := about("web"); got != 1 || len(s.terms.terms) > keepDead+2 {
		t.Errorf("%d terms about web, want that of the pod on n2; %d are kept", got, len(s.terms.terms))
	}
	s.Set(0, nil)
	s.Set(1, nil)
	if s.terms.dead != len(s.terms.terms) {
		t.Errorf("%d of %d terms without pods", s.terms.dead, len(s.terms.terms))
	}
}
