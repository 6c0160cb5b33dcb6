package model

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

func named(name string) *NodeInfo {
	return NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func podOf(uid string) *PodInfo {
	return NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: uid, UID: types.UID(uid)}})
}

// portedPod has a host port, requests, and affinity to and from other pods.
func portedPod() *corev1.Pod {
	term := corev1.PodAffinityTerm{TopologyKey: "zone",
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			Affinity: &corev1.Affinity{
				PodAffinity: &corev1.PodAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}},
			},
			Containers: []corev1.Container{
				{Name: "c", Image: "web:1", Ports: []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}},
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("1"),
							"example.com/gpu": resource.MustParse("1")}}}},
		},
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
			p := portedPod()
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
		if !maps.Equal(n.Ports, want.Ports) || len(n.Pods) != len(there) || len(n.WithTerms) != len(want.WithTerms) ||
			len(n.WithAntiAffinity) != len(want.WithAntiAffinity) {
			t.Fatalf("step %d: %+v, want %+v", i, n, want)
		}
	}
	if n.RemovePod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "stranger"}}) {
		t.Error("a pod that was never there was removed")
	}
}

func TestNodeInfoClonesAreApart(t *testing.T) {
	t.Parallel()
	p, q := NewPodInfo(portedPod()), portedPod()
	q.UID, q.Spec.Containers[0].Ports[0].HostPort = "v", 81
	second := NewPodInfo(q)
	n := NewNodeInfo(named("n").Node, p, second)
	want := NewNodeInfo(n.Node, p, second)
	for name, change := range map[string]func(*NodeInfo){"added to": func(c *NodeInfo) {
		c.AddPod(podOf("w"))
		c.AddPod(p)
	}, "taken from": func(c *NodeInfo) { c.RemovePod(p.Pod) }} {
		change(n.Clone())
		if !slices.Equal(n.Pods, want.Pods) || !slices.Equal(n.WithTerms, want.WithTerms) ||
			!slices.Equal(n.WithAntiAffinity, want.WithAntiAffinity) ||
			!maps.Equal(n.Ports, want.Ports) || !n.Requested.Equal(&want.Requested) || !n.NonZero.Equal(&want.NonZero) {
			t.Errorf("the clone was %s a pod, and the node became %+v", name, n)
		}
	}
	same := *p
	n.ReplacePod(&same)
	if n.Pods[0] != &same || n.WithTerms[0] != &same || n.WithAntiAffinity[0] != &same {
		t.Error("ReplacePod left the old pod in a list")
	}
}

func TestSnapshotKeepsItsCounts(t *testing.T) {
	t.Parallel()
	near := NewPodInfo(portedPod())
	s := NewSnapshot(NewNodeInfo(named("a").Node, near), named("b"))
	s.Set(4, named("c"))
	s.Set(0, named("d")) // a is gone, d has its slot
	s.Set(1, nil)
	var got []string
	for n := range s.All {
		got = append(got, n.Name())
	}
	if !slices.Equal(got, []string{"d", "c"}) || s.Count != 2 || s.WithTerms != 0 || s.Get("a") != nil ||
		s.Get("b") != nil || s.Get("c") == nil {
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
		t.Errorf("moved to n2: it is %s, on n1 %s, on n2 %s", n.Of("mid"), names(n.On("n1", equal)),
			names(n.On("n2", equal)))
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
	p := portedPod()
	p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchExpressions =
		[]metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
	info := NewPodInfo(p)
	if info.Err == nil || !strings.Contains(info.Err.Error(), "pod ns/p") {
		t.Errorf("error %v, want one that names the pod", info.Err)
	}
	if info.Terms.Affinity[0].Matches(p, nil) {
		t.Error("a term that cannot be read matches something")
	}
	if err := NewPodInfo(portedPod()).Err; err != nil {
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
	pods := []*PodInfo{pod("ns", "web", false), pod("ns", "web", false), pod("ns", "web", true), pod("ns", "db", false),
		pod("other", "web", false)}
	web := labels.SelectorFromSet(labels.Set{"app": "web"})
	if got := CountMatching(pods, "ns", web); got != 2 {
		t.Errorf("%d, want the two of the namespace that stay", got)
	}
	if got := CountMatching(pods, "ns", labels.Everything()); got != 0 {
		t.Errorf("an empty selector counts %d", got)
	}
}

// TestTermsAbout: the terms of the pods on nodes, alike ones once, and no more than keepDead of those whose pods are
// gone.
func TestTermsAbout(t *testing.T) {
	t.Parallel()
	apart := func(name, app string) *PodInfo {
		return NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: types.UID(name)},
			Spec: corev1.PodSpec{Affinity: &corev1.Affinity{
				PodAntiAffinity: &corev1.PodAntiAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "zone",
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}}}}})
	}
	s := NewSnapshot(named("n1"), named("n2"))
	about := func(app string) int {
		n := 0
		s.TermsAbout(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{"app": app}}},
			nil, func(string) {
				n++
			})
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
