package cache

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/model"
)

func pod(name, node string) *model.PodInfo {
	return model.NewPodInfo(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: corev1.PodSpec{NodeName: node,
				Containers: []corev1.Container{
					{Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}})
}

func makeNode(name string, images ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, i := range images {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{i}, SizeBytes: 1})
	}
	return n
}

// state writes the snapshot as "node:cpus" by slot.
func state(c *Cache, s *model.Snapshot) string {
	c.Refresh(s)
	out := ""
	for _, n := range s.Nodes {
		if n == nil {
			out += "- "
			continue
		}
		out += fmt.Sprintf("%s:%d ", n.Name(), n.Requested.MilliCPU/1000)
	}
	return out
}

func TestLifeOfAnAssumedPod(t *testing.T) {
	t.Parallel()
	c, s := New(), model.NewSnapshot()
	expect := func(what, want string) {
		t.Helper()
		if got := state(c, s); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	c.SetNode(makeNode("a"))
	c.SetNode(makeNode("b"))
	p := pod("p", "")
	if err := c.Assume(p, "a"); err != nil {
		t.Fatal(err)
	}
	if c.Assume(p, "b") == nil {
		t.Error("a pod can be assumed twice")
	}
	expect("assumed", "a:1 b:0 ")
	c.Forget(p)
	expect("forgotten", "a:0 b:0 ")

	c.Assume(p, "a")
	before := s.Generation
	c.Add(pod("p", "a"))
	state(c, s)
	c.Forget(p)
	expect("a confirmed pod cannot be forgotten", "a:1 b:0 ")
	if s.Generation != before+1 {
		t.Errorf("confirming a pod touched its node: generation %d after %d", s.Generation, before)
	}
	c.Add(pod("p", "b"))
	expect("it was bound elsewhere", "a:0 b:1 ")
	if was := c.Remove("p"); was == nil || was.Pod.Name != "p" {
		t.Errorf("Remove = %v", was)
	}
	expect("gone", "a:0 b:0 ")
}

// TestNewStatusReachesTheSnapshot: preemption compares start times and asks whether a pod ends by preemption, so a
// pod's status must be that of its last event, though no verdict depends on it.
func TestNewStatusReachesTheSnapshot(t *testing.T) {
	t.Parallel()
	c, s := New(), model.NewSnapshot()
	c.SetNode(makeNode("a"))
	if err := c.Assume(pod("p", ""), "a"); err != nil {
		t.Fatal(err)
	}
	c.Refresh(s)
	before := s.Get("a").Generation
	started := pod("p", "a")
	started.Pod.Status.StartTime = &metav1.Time{Time: time.Unix(5, 0)}
	c.Add(started)
	c.Refresh(s)
	n := s.Get("a")
	if got := n.Pods[0].Pod.Status.StartTime; got == nil || !got.Time.Equal(time.Unix(5, 0)) {
		t.Errorf("start time %v, want the newest", got)
	}
	if n.Generation != before {
		t.Error("the node is evaluated again for a status that no verdict depends on")
	}
}

func TestNodesAndTheirSlots(t *testing.T) {
	t.Parallel()
	c, s := New(), model.NewSnapshot()
	c.Add(pod("early", "b"))
	c.SetNode(makeNode("a", "x:1"))
	c.SetNode(makeNode("b", "x:1"))
	if got := state(c, s); got != "a:0 b:1 " {
		t.Errorf("%q: a pod seen before its node is lost", got)
	}
	if s.Images["x:1"].Nodes != 2 {
		t.Errorf("images %v", s.Images)
	}
	c.RemoveNode("a")
	if got := state(c, s); got != "- b:1 " || s.Count != 1 || s.Images["x:1"].Nodes != 1 {
		t.Errorf("%q, count %d, images %v", got, s.Count, s.Images)
	}
	c.RemoveNode("b")
	c.SetNode(makeNode("c"))
	c.SetNode(makeNode("b"))
	if got := state(c, s); got != "b:1 c:0 " && got != "c:0 b:1 " {
		t.Errorf("%q: slots are not reused, or the pod of the returning node is lost", got)
	}
}

func TestSnapshotDoesNotChangeByItself(t *testing.T) {
	t.Parallel()
	c, s := New(), model.NewSnapshot()
	c.SetNode(makeNode("a"))
	c.Refresh(s)
	c.Add(pod("p", "a"))
	if n := s.Get("a"); len(n.Pods) != 0 || n.Requested.MilliCPU != 0 {
		t.Error("the snapshot changed under a decision")
	}
}

// TestSizeOfAnImage: nodes that report different sizes of one image share the first one's, as long as one of them has
// it (kube-scheduler 1.36.3).
func TestSizeOfAnImage(t *testing.T) {
	t.Parallel()
	c, s := New(), model.NewSnapshot()
	report := func(name string, size, want int64) {
		t.Helper()
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if size > 0 {
			n.Status.Images = []corev1.ContainerImage{{Names: []string{"x:1"}, SizeBytes: size}}
		}
		c.SetNode(n)
		if c.Refresh(s); s.Images["x:1"].Size != want {
			t.Errorf("node %s reports %d: the size is %d, want %d", name, size, s.Images["x:1"].Size, want)
		}
	}
	report("b", 900, 900)
	report("a", 400, 900)
	report("b", 500, 900)
	report("a", 700, 900)
	report("a", 0, 900)
	report("b", 300, 300)
	report("a", 900, 300)
}
