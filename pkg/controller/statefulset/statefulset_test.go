package statefulset

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/history"
)

const (
	podsPath      = "/api/v1/namespaces/ns/pods"
	revisionsPath = "/apis/apps/v1/namespaces/ns/controllerrevisions"
)

// stage is a controller with one StatefulSet and the revision of its template in its caches, on a fake API server.
func stage(t *testing.T, n int32, answer func(controllertest.Call) (runtime.Object, error)) (*Controller,
	*controllertest.Fake, *appsv1.StatefulSet, *appsv1.ControllerRevision) {
	t.Helper()
	f := &controllertest.Fake{Answer: answer}
	d := f.Deps(t, now)
	d.Now = time.Now // the back-off of failed pods has this clock
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "web"}
	set := stateOf(n, "", parallel).set
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	controllertest.Put(t, c.sets, set)
	return c, f, set, revisionFor(t, set, "web-now", 2)
}

// revisionFor is a revision of the set's present template.
func revisionFor(t *testing.T, set *appsv1.StatefulSet, name string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	data, err := history.Snapshot(&set.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: name, Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind())}},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}

func reconcile(t *testing.T, c *Controller, set *appsv1.StatefulSet) controller.Result {
	t.Helper()
	result, err := c.Reconcile(t.Context(), controller.KeyOf(set))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func events(c *Controller) string {
	var out []string
	for ch := c.Events.(*record.FakeRecorder).Events; len(ch) > 0; {
		out = append(out, <-ch)
	}
	return strings.Join(out, "\n")
}

func calls(f *controllertest.Fake, name string) (n int) {
	for _, c := range f.Names() {
		if c == name {
			n++
		}
	}
	return n
}

// TestLateCache: while the cache does not show what was created or deleted, nothing more is.
func TestLateCache(t *testing.T) {
	t.Parallel()
	c, f, set, r := stage(t, 2, nil)
	controllertest.Put(t, c.revisions, r)
	for range 3 {
		reconcile(t, c, set)
	}
	if n := calls(f, "POST "+podsPath); n != 2 {
		t.Errorf("%d pods were created, want 2", n)
	}
	c, f, set, r = stage(t, 0, nil)
	controllertest.Put(t, c.revisions, r)
	controllertest.Put(t, c.pods, podAs(set, 0, '+', r.Name))
	c.pods.List()[0].Labels["app"] = "web"
	for range 3 {
		reconcile(t, c, set)
	}
	if n := calls(f, "DELETE "+podsPath+"/web-0"); n != 1 {
		t.Errorf("the pod was deleted %d times", n)
	}
}

// TestFailedPods: the first pod that fails is replaced at once, the next in its place only after a while.
func TestFailedPods(t *testing.T) {
	t.Parallel()
	c, f, set, r := stage(t, 1, nil)
	controllertest.Put(t, c.revisions, r)
	p := podAs(set, 0, 'x', r.Name)
	maps.Copy(p.Labels, set.Spec.Template.Labels)
	controllertest.Put(t, c.pods, p)
	for i, want := range []int{1, 1} {
		result := reconcile(t, c, set)
		if n := calls(f, "DELETE "+podsPath+"/web-0"); n != want || (result.RequeueAfter > 0) != (i > 0) {
			t.Errorf("reconcile %d: deleted %d times, again in %s", i, n, result.RequeueAfter)
		}
		c.expect.Forget(set.UID)
	}
}

// TestCurrentRevision: below the partition a pod is made from the current revision, also when the cache of revisions
// does not have it yet; if it is gone for good, from the newest.
func TestCurrentRevision(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, "web-before")
	for _, c := range []struct {
		name   string
		cached bool
		fresh  error
		want   string
	}{{"cached", true, gone, "before"}, {"only fresh", false, nil, "before"}, {"gone", false, gone, ""}} {
		before := stateOf(1, "").set
		before.Spec.Template.Labels = map[string]string{"app": "web"}
		before.Spec.Template.Spec.NodeName = "before"
		old := revisionFor(t, before, "web-before", 1)
		var made *corev1.Pod
		ctl, _, set, r := stage(t, 1, func(call controllertest.Call) (runtime.Object, error) {
			if call.Name() == "GET "+revisionsPath+"/web-before" {
				return old, c.fresh
			}
			if p, ok := call.Object.(*corev1.Pod); ok {
				made = p
			}
			return call.Object, nil
		})
		partition(1)(set)
		set.Status.CurrentRevision = old.Name
		controllertest.Put(t, ctl.revisions, r)
		if c.cached {
			controllertest.Put(t, ctl.revisions, old)
		}
		reconcile(t, ctl, set)
		if made == nil || made.Spec.NodeName != c.want {
			t.Errorf("%s: made %+v", c.name, made)
		}
	}
}

// TestHashCollision: a revision of another template that has the name raises the collision count, and no pod is made.
func TestHashCollision(t *testing.T) {
	t.Parallel()
	var status *appsv1.StatefulSetStatus
	c, f, set, _ := stage(t, 1, func(call controllertest.Call) (runtime.Object, error) {
		switch {
		case call.Name() == "POST "+revisionsPath:
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"},
				"taken")
		case call.Method == "GET":
			return &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(`{"other":1}`)}}, nil
		}
		if s, ok := call.Object.(*appsv1.StatefulSet); ok {
			status = &s.Status
		}
		return call.Object, nil
	})
	if _, err := c.Reconcile(t.Context(), controller.KeyOf(set)); err == nil {
		t.Error("the collision is no error")
	}
	if status == nil || count(status.CollisionCount) != 1 || calls(f, "POST "+podsPath) > 0 {
		t.Errorf("status %+v, calls %v", status, f.Names())
	}
}

// TestPodEvents: what is told of a name that is taken, and of labels that were repaired.
func TestPodEvents(t *testing.T) {
	t.Parallel()
	c, _, set, r := stage(t, 1, func(call controllertest.Call) (runtime.Object, error) {
		if call.Name() == "POST "+podsPath {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "pods"}, "web-0")
		}
		return call.Object, nil
	})
	controllertest.Put(t, c.revisions, r)
	if _, err := c.Reconcile(t.Context(), controller.KeyOf(set)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("a taken name: %v", err)
	}
	if got := events(c); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
	c, f, set, r := stage(t, 1, func(controllertest.Call) (runtime.Object, error) { return &corev1.Pod{}, nil })
	p := podAs(set, 0, '?', r.Name)
	maps.Copy(p.Labels, set.Spec.Template.Labels)
	if err := c.repair(t.Context(), set, []*corev1.Pod{p}); err != nil {
		t.Fatal(err)
	}
	if got, want := events(c), "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful"; got != want ||
		!slices.Equal(f.Names(), []string{"PATCH " + podsPath + "/web-0"}) {
		t.Errorf("got %q and %v, want %q", got, f.Names(), want)
	}
}

// TestAdopters: an orphan is for the sets whose selector and name fit.
func TestAdopters(t *testing.T) {
	t.Parallel()
	c, _, set, _ := stage(t, 1, nil)
	p := podAs(set, 7, '+', "a")
	p.OwnerReferences = nil
	if got := c.adopters(p); got != nil {
		t.Errorf("without the labels: %v", got)
	}
	maps.Copy(p.Labels, set.Spec.Template.Labels)
	if got := c.adopters(p); !slices.Equal(got, []controller.Key{controller.KeyOf(set)}) {
		t.Errorf("with the labels: %v", got)
	}
	p.Name = "stranger-7"
	if got := c.adopters(p); got != nil {
		t.Errorf("with another name: %v", got)
	}
}
