package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
)

// world has two namespaces of different teams, and no workloads.
type world struct{}

func (world) SelectorFor(*corev1.Pod) labels.Selector { return nil }
func (world) Epoch() int64                            { return 0 }
func (world) NamespaceLabels(name string) labels.Set  { return labels.Set{"team": name} }

func allPlugins(t testing.TB) *profile.Profile {
	t.Helper()
	p, err := profile.New("s", plugins.Default(plugins.Config{Workloads: world{}, Namespaces: world{}}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// crowd makes random pods, nodes and events.
type crowd struct {
	r    *rand.Rand
	next int
}

func (c *crowd) one(list ...string) string { return list[c.r.IntN(len(list))] }
func (c *crowd) chance(percent int) bool   { return c.r.IntN(100) < percent }

func (c *crowd) selector() *metav1.LabelSelector {
	if c.chance(10) {
		return &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "app", Operator: "NotIn", Values: []string{c.one("web", "db")}}}}
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.one("web", "db", "job")}}
}

func (c *crowd) pod() *model.PodInfo {
	c.next++
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.one("a", "b"), Name: fmt.Sprint("p", c.next),
		UID:    types.UID(fmt.Sprint(c.next)),
		Labels: map[string]string{"app": c.one("web", "db", "job")}}}
	if c.chance(30) {
		p.Labels["statefulset.kubernetes.io/pod-name"] = p.Name
	}
	if c.chance(50) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
			WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(c.one("DoNotSchedule", "ScheduleAnyway")),
			LabelSelector:     c.selector()}}
		if c.chance(30) {
			p.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"statefulset.kubernetes.io/pod-name"}
		}
	}
	term := func() []corev1.PodAffinityTerm {
		t := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: c.selector()}
		if c.chance(30) {
			t.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": c.one("a", "b")}}
		}
		return []corev1.PodAffinityTerm{t}
	}
	p.Spec.Affinity = &corev1.Affinity{}
	if c.chance(30) {
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term()}
	}
	if c.chance(40) {
		p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: term()}
	}
	if c.chance(30) {
		p.Spec.NodeSelector = map[string]string{"disk": c.one("ssd", "hdd")}
	}
	if c.chance(30) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
	}
	p.Spec.Containers = []corev1.Container{{}}
	if c.chance(20) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: int32(80 + c.r.IntN(2))}}
	}
	return model.NewPodInfo(p)
}

func (c *crowd) event() clusterevent.Event {
	if c.chance(30) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
			Labels: map[string]string{"disk": c.one("ssd", "hdd")}}}
		n.Spec.Unschedulable = c.chance(30)
		if c.chance(30) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		}
		return clusterevent.Event{Kind: clusterevent.Node, New: n,
			Action: []clusterevent.Action{clusterevent.Add, clusterevent.Delete, clusterevent.UpdateLabels,
				clusterevent.UpdateTaints, clusterevent.UpdateAllocatable}[c.r.IntN(5)]}
	}
	switch c.r.IntN(3) {
	case 0:
		return clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Add, New: c.pod()}
	case 1:
		return clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: c.pod()}
	}
	return clusterevent.Event{Kind: clusterevent.AssignedPod,
		Action: []clusterevent.Action{clusterevent.UpdateLabels, clusterevent.UpdateOther,
			clusterevent.UpdateRequests}[c.r.IntN(3)], Old: c.pod(), New: c.pod()}
}

// TestAnEventWakesWhomItHelps runs random events against random waiting pods: those that are woken are those that
// Profile.Helps names when it is asked for each.
func TestAnEventWakesWhomItHelps(t *testing.T) {
	t.Parallel()
	c, profile := &crowd{r: rand.New(rand.NewPCG(1, 1))}, allPlugins(t)
	names := slices.Sorted(maps.Keys(profile.Interests))
	w, waiting := &watches{}, map[types.UID]*item{}
	woken, left := 0, 0
	for round := range 1500 {
		for len(waiting) < 30 {
			it := &item{QueuedPod: &framework.QueuedPod{PodInfo: c.pod(), Failed: map[string]bool{}}}
			for c.chance(80) {
				it.Failed[c.one(names...)] = true
			}
			if c.chance(3) {
				it.Failed["SomebodyElse"] = true
			}
			w.add(profile, it)
			waiting[it.Pod.UID] = it
		}
		e := c.event()
		want := map[types.UID]bool{}
		for uid, it := range waiting {
			if profile.Helps(it.PodInfo, it.Failed, e) {
				want[uid] = true
			}
		}
		at := time.Unix(int64(round), 0)
		w.moved(e, at)
		for uid, it := range waiting {
			if round%2 == 0 {
				break // half of the time the pods are first asked for by work
			}
			if when, _, ok := w.helpedAt(it); ok != want[uid] || ok && !when.Equal(at) {
				t.Fatalf("event %+v, pod %+v that failed %v: woken %v at %s, want %v at %s", e, it.Pod, it.Failed, ok,
					when, want[uid], at)
			}
		}
		woken, left = woken+len(want), left+len(waiting)-len(want)
		for {
			it, _, done := w.work()
			if done {
				break
			}
			if it == nil {
				continue
			}
			if !want[it.Pod.UID] || waiting[it.Pod.UID] == nil {
				t.Fatalf("pod %s is handed out, which is not helped or not for the first time", it.Pod.Name)
			}
			w.remove(it)
			delete(waiting, it.Pod.UID)
			delete(want, it.Pod.UID)
		}
		if len(want) > 0 {
			t.Fatalf("%d helped pods are not handed out", len(want))
		}
		for uid, it := range waiting { // some that nothing helps give way to new ones
			if len(waiting) < 20 {
				break
			}
			w.remove(it)
			delete(waiting, uid)
		}
	}
	for _, it := range waiting {
		w.remove(it)
	}
	for _, in := range w.byInterest {
		if len(in.groups)+len(in.events)+len(in.todo) > 0 {
			t.Error("groups without pods, or events that everybody was asked about, are kept")
		}
	}
	if woken < 1000 || left < 1000 {
		t.Errorf("too one-sided to mean much: %d woken, %d not", woken, left)
	}
}

// TestTooManyEventsWakeEverybody: what a pod was not asked about may have helped it.
func TestTooManyEventsWakeEverybody(t *testing.T) {
	t.Parallel()
	w, profile := &watches{}, allPlugins(t)
	it := &item{QueuedPod: &framework.QueuedPod{PodInfo: (&crowd{r: rand.New(rand.NewPCG(1, 1))}).pod(),
		Failed: map[string]bool{"NodePorts": true}}}
	w.add(profile, it)
	for i := range 3 * maxEvents {
		w.moved(clusterevent.Event{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, Old: &model.PodInfo{}},
			time.Unix(int64(i), 0))
		for _, in := range w.byInterest {
			if len(in.events) > maxEvents {
				t.Fatalf("%d events are kept", len(in.events))
			}
		}
		if i == maxEvents-1 {
			if _, _, ok := w.helpedAt(it); ok {
				t.Fatal("woken, though it was asked about every event and none helped")
			}
			w.remove(it)
			w.add(profile, it)
		}
	}
	if _, _, ok := w.helpedAt(it); !ok {
		t.Error("not woken, though it was not asked about some events")
	}
}
