package scheduler

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins/defaultbinder"
	"bonsai/pkg/scheduler/plugins/prioritysort"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/queue"
)

// TestPodActions: a waiting pod is woken only by the parts of a change that its plug-ins asked for.
func TestPodActions(t *testing.T) {
	t.Parallel()
	pod := func() *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "g"}},
				Containers: []corev1.Container{{
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Pod)
		want   clusterevent.Action
	}{
		{"nothing", func(*corev1.Pod) {}, 0},
		{"conditions", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}}
		}, 0},
		{"annotations, kept since somebody reads them", func(p *corev1.Pod) {
			p.Annotations = map[string]string{"x": "y"}
		}, clusterevent.UpdateOther},
		{"labels", func(p *corev1.Pod) { p.Labels["a"] = "c" }, clusterevent.UpdateLabels},
		{"requests", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("2")
		}, clusterevent.UpdateRequests},
		{"the same request in other words", func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000m")
		}, 0},
		{"a toleration more", func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k"}}
		}, clusterevent.UpdateTolerations},
		{"a gate less", func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }, clusterevent.UpdateGates},
		{"being deleted", func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}, clusterevent.UpdateOther},
		{"two things", func(p *corev1.Pod) {
			p.Labels, p.Spec.SchedulingGates = nil, nil
		}, clusterevent.UpdateLabels | clusterevent.UpdateGates},
	} {
		p := pod()
		c.change(p)
		if got := podActions(model.NewPodInfo(pod()), model.NewPodInfo(p)); got != c.want {
			t.Errorf("%s: %b, want %b", c.name, got, c.want)
		}
	}
}

// TestNodeActions: heartbeats must wake nobody.
func TestNodeActions(t *testing.T) {
	t.Parallel()
	node := func() *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{"cpu": resource.MustParse("1")},
				Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady}}}}
	}
	for _, c := range []struct {
		name   string
		change func(*corev1.Node)
		want   clusterevent.Action
	}{
		{"a heartbeat", func(n *corev1.Node) {
			n.ResourceVersion, n.Status.Conditions[0].LastHeartbeatTime = "9", metav1.Unix(9, 0)
		}, 0},
		{"allocatable", func(n *corev1.Node) {
			n.Status.Allocatable["cpu"] = resource.MustParse("2")
		}, clusterevent.UpdateAllocatable},
		{"the same in other words", func(n *corev1.Node) {
			n.Status.Allocatable["cpu"] = resource.MustParse("1000m")
		}, 0},
		{"labels", func(n *corev1.Node) { n.Labels = nil }, clusterevent.UpdateLabels},
		{"taints", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }, clusterevent.UpdateTaints},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, clusterevent.UpdateTaints},
	} {
		n := node()
		c.change(n)
		if got := nodeActions(node(), n); got != c.want {
			t.Errorf("%s: %b, want %b", c.name, got, c.want)
		}
	}
}

// one is a scheduler of a single profile that does not run.
func one(t *testing.T) *Scheduler {
	t.Helper()
	p, err := profile.New("s", []profile.Enabled{{Plugin: prioritysort.Plugin{}}, {Plugin: defaultbinder.Plugin{}}})
	if err != nil {
		t.Fatal(err)
	}
	q := queue.New(queue.Config{Profile: func(*model.PodInfo) *profile.Profile {
		return p
	}, Less: p.Sort.Less, Now: time.Now})
	return &Scheduler{Config: Config{Profiles: map[string]*profile.Profile{"s": p}, Cache: cache.New(), Queue: q,
		Nominator: model.NewNominator()}}
}

// TestNodeChangedSeesEveryKeptField: what is kept of a node is what somebody reads, so a change of it reaches the
// cache, and wakes pods unless it can only change scores. Heartbeats are no change.
func TestNodeChangedSeesEveryKeptField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      func(*corev1.Node)
		seen, wakes bool
	}{
		"heartbeat": {func(n *corev1.Node) {
			n.ResourceVersion, n.Status.Conditions[0].LastHeartbeatTime = "2", metav1.Unix(9, 0)
		}, false, false},
		"condition": {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true, true},
		"capacity": {func(n *corev1.Node) {
			n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8")}
		}, true, true},
		"annotation": {func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }, true, false},
		"images": {func(n *corev1.Node) {
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
		}, true, false},
	} {
		s := one(t)
		old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}, Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		s.NodeChanged(nil, old)
		node := old.DeepCopy()
		c.change(node)
		s.NodeChanged(old, node)
		snapshot := model.NewSnapshot()
		s.Cache.Refresh(snapshot)
		if got := snapshot.Get("n").Node == node; got != c.seen {
			t.Errorf("%s: the cache has the new node: %v, want %v", name, got, c.seen)
		}
		if got := nodeActions(old, node) != 0; got != c.wakes {
			t.Errorf("%s: wakes pods: %v, want %v", name, got, c.wakes)
		}
	}
}

// TestNominations: the API's word counts where it is news; a nomination goes with its pod.
func TestNominations(t *testing.T) {
	t.Parallel()
	s := one(t)
	pod := func(node, label string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "p",
			Labels: map[string]string{"l": label}},
			Spec: corev1.PodSpec{SchedulerName: "s"}, Status: corev1.PodStatus{NominatedNodeName: node}}
	}
	states := []*corev1.Pod{pod("n1", ""), pod("n1", "x"), pod("n2", "x"), pod("", "x")}
	expect := func(what, node, label string) {
		t.Helper()
		if got := s.Nominator.Of("p"); got != node {
			t.Errorf("%s: nominated to %q, want %q", what, got, node)
		}
		if on := s.Nominator.On(node, model.NewPodInfo(&corev1.Pod{})); node != "" &&
			(len(on) != 1 || on[0].Pod.Labels["l"] != label) {
			t.Errorf("%s: not the newest state of the pod", what)
		}
	}
	s.PodChanged(nil, states[0])
	expect("seen at the start", "n1", "")
	s.PodChanged(states[0], states[1])
	expect("new labels", "n1", "x")
	s.PodChanged(states[1], states[2])
	expect("another node", "n2", "x")
	s.PodChanged(states[2], states[3])
	expect("taken back", "", "")

	p, _ := s.Queue.Pop(t.Context())
	s.requeue(p, new("n3"), nil, nil, true)
	expect("decided", "n3", "x")
	s.PodChanged(states[3], pod("", "y"))
	expect("decided, but not written yet", "n3", "y")

	s.Queue.Delete("p") // it would wait out its back-off
	s.Queue.Add(model.NewPodInfo(states[3]))
	p, _ = s.Queue.Pop(t.Context())
	s.PodChanged(states[3], nil)
	s.requeue(p, new("n4"), nil, nil, true)
	expect("deleted while it was being scheduled", "", "")

	if err := s.Cache.Assume(model.NewPodInfo(states[3]), "n1"); err != nil {
		t.Fatal(err)
	}
	s.PodChanged(states[3], states[0])
	expect("it has been given a node", "", "")
}
