package tainteviction

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// stage is a controller with one pod that tolerates everything for a minute, on one node without taints.
func stage(t *testing.T) (c *Controller, f *controllertest.Fake, now *time.Time, p *corev1.Pod) {
	t.Helper()
	start := time.Unix(1_000_000, 0)
	now, f = &start, &controllertest.Fake{}
	d := f.Deps(t, start)
	d.Now = func() time.Time { return *now }
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	p = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p-uid",
			CreationTimestamp: metav1.NewTime(start.Add(-time.Hour))},
		Spec: corev1.PodSpec{NodeName: "n1",
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(60))}}},
	}
	controllertest.Put(t, c.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	controllertest.Put(t, c.pods, p)
	return c, f, now, p
}

// setTaints is a change of the node that the watch brings.
func setTaints(t *testing.T, c *Controller, taints ...corev1.Taint) {
	t.Helper()
	old, _ := c.nodes.Get(controller.Key{Name: "n1"})
	n := old.DeepCopy()
	n.Spec.Taints = taints
	controllertest.Put(t, c.nodes, n)
	c.nodeChanged(noExecute(old), n)
}

func reconcile(t *testing.T, c *Controller) time.Duration {
	t.Helper()
	r, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "p"})
	if err != nil {
		t.Fatal(err)
	}
	return r.RequeueAfter
}

const evict = "DELETE /api/v1/namespaces/ns/pods/p"

// TestTaintWithoutTime: kubectl taint writes no timeAdded. The toleration's seconds run from when the taint was seen,
// however often the pod is looked at meanwhile, and again once the taint was away.
func TestTaintWithoutTime(t *testing.T) {
	t.Parallel()
	c, f, now, _ := stage(t)
	byHand := corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}
	setTaints(t, c, byHand)
	for range 3 {
		begin := *now
		for _, want := range []time.Duration{60 * time.Second, 40 * time.Second, 20 * time.Second} {
			if got := reconcile(t, c); got != want || len(f.Calls()) > 0 {
				t.Fatalf("%s after the taint: again in %s, want %s; calls %v", now.Sub(begin), got, want, f.Names())
			}
			*now = now.Add(20 * time.Second)
		}
		setTaints(t, c)
		setTaints(t, c, byHand, corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule})
	}
	*now = now.Add(time.Minute)
	if reconcile(t, c); !slices.Contains(f.Names(), evict) {
		t.Errorf("not evicted after a minute: %v", f.Names())
	}
}

// TestLateArrival: a pod that comes to a node that has had its taint for long may stay as long as it tolerates that.
func TestLateArrival(t *testing.T) {
	t.Parallel()
	c, f, now, p := stage(t)
	long := metav1.NewTime(now.Add(-time.Hour))
	setTaints(t, c, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute, TimeAdded: &long})
	p = p.DeepCopy()
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now.Add(-10 * time.Second))}}
	controllertest.Put(t, c.pods, p)
	if got := reconcile(t, c); got != 50*time.Second || len(f.Calls()) > 0 {
		t.Errorf("again in %s, calls %v", got, f.Names())
	}
	*now = now.Add(50 * time.Second)
	if reconcile(t, c); !slices.Contains(f.Names(), evict) {
		t.Errorf("calls %v", f.Names())
	}
}
