package replicaset

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// stage is a controller with the set ns/web of n replicas in its cache, whose pods the server answers with err.
func stage(t *testing.T, n int32, err error) (*Controller, *controllertest.Fake) {
	t.Helper()
	f := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		if call.Method == "POST" {
			return call.Object, err
		}
		return call.Object, nil
	}}
	c, newErr := New(f.Deps(t, time.Unix(1_000_000, 0)))
	if newErr != nil {
		t.Fatal(newErr)
	}
	put(t, c, "web-uid", n)
	return c, f
}

func put(t *testing.T, c *Controller, uid types.UID, n int32) {
	t.Helper()
	l := map[string]string{"app": "web"}
	controllertest.Put(t, c.src.(replicaSets).cache,
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: uid},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: l},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}}}})
}

func posts(f *controllertest.Fake) (n int) {
	for _, call := range f.Calls() {
		if call.Method == "POST" {
			n++
		}
	}
	return n
}

// TestEndingNamespace: one refused pod is enough; nothing is tried again while the set goes with its namespace.
func TestEndingNamespace(t *testing.T) {
	t.Parallel()
	c, f := stage(t, 100, controllertest.Ending())
	for i := range 3 {
		if _, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "web"}); err != nil ||
			posts(f) != 1 {
			t.Errorf("reconcile %d: %v, %d creations", i, err, posts(f))
		}
	}
	if n := len(c.Events.(*record.FakeRecorder).Events); n != 0 {
		t.Errorf("%d events", n)
	}
}

// TestRefusedPods: other refusals are tried again, one pod at a time.
func TestRefusedPods(t *testing.T) {
	t.Parallel()
	c, f := stage(t, 100, apierrors.NewInternalError(errors.New("no")))
	for i := range 3 {
		if _, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "web"}); err == nil ||
			posts(f) != i+1 {
			t.Errorf("reconcile %d: %v, %d creations", i, err, posts(f))
		}
	}
}

// TestObservedGeneration: a new size counts as observed when the set acts by it, not while the pods of the last one are
// not all seen.
func TestObservedGeneration(t *testing.T) {
	t.Parallel()
	c, f := stage(t, 2, nil)
	key := controller.Key{Namespace: "ns", Name: "web"}
	observed := func(generation int64) int64 {
		t.Helper()
		cache := c.src.(replicaSets).cache
		rs, _ := cache.Get(key)
		rs = rs.DeepCopy()
		rs.Generation = generation
		controllertest.Put(t, cache, rs)
		if _, err := c.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		last := int64(-1)
		for _, call := range f.Calls() {
			if rs, ok := call.Object.(*appsv1.ReplicaSet); ok {
				last = rs.Status.ObservedGeneration
			}
		}
		return last
	}
	if got := observed(1); got != 1 {
		t.Errorf("the first size: %d", got)
	}
	if got := observed(2); got != 0 && got != 1 { // the cache has the status of the beginning
		t.Errorf("with pods on their way: %d", got)
	}
	c.expect.Created("web-uid", 2)
	if got := observed(2); got != 2 {
		t.Errorf("with all pods seen: %d", got)
	}
}

// TestReplacedSet: what is expected of a set is not expected of the next one of its name.
func TestReplacedSet(t *testing.T) {
	t.Parallel()
	c, f := stage(t, 2, nil)
	for _, uid := range []types.UID{"web-uid", "web-uid", "new-uid"} {
		put(t, c, uid, 2)
		if _, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "web"}); err != nil {
			t.Fatal(err)
		}
	}
	if posts(f) != 4 {
		t.Errorf("%d creations, want two for each set", posts(f))
	}
}
