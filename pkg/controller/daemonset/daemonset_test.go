package daemonset

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/podtemplate"
)

// stage is a controller with one DaemonSet and one node in its caches, on a fake API server.
func stage(t *testing.T, answer func(controllertest.Call) (runtime.Object, error)) (*Controller, *controllertest.Fake,
	*appsv1.DaemonSet) {
	t.Helper()
	f := &controllertest.Fake{Answer: answer}
	c, err := New(f.Deps(t, start))
	if err != nil {
		t.Fatal(err)
	}
	ds := set(nil)
	ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: ds.Spec.Template.Labels}
	ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	controllertest.Put(t, c.sets, ds)
	controllertest.Put(t, c.nodes, node("n1", nil))
	return c, f, ds
}

func events(c *Controller) (out []string) {
	for ch := c.Events.(*record.FakeRecorder).Events; len(ch) > 0; {
		out = append(out, <-ch)
	}
	return out
}

// TestFailedPods: the first pod that fails is replaced at once, the next on the same node only after a while.
func TestFailedPods(t *testing.T) {
	t.Parallel()
	c, f, ds := stage(t, nil)
	hash := podtemplate.Hash(&ds.Spec.Template, nil)
	for i, name := range []string{"first", "second"} {
		p := podFor(ds, hash, "n1")
		p.Name, p.UID, p.Spec.NodeName, p.Status.Phase = name, "p-uid", "n1", corev1.PodFailed
		controllertest.Put(t, c.pods, p)
		result, err := c.Reconcile(t.Context(), controller.KeyOf(ds))
		if err != nil {
			t.Fatal(err)
		}
		deleted := slices.Contains(f.Names(), "DELETE /api/v1/namespaces/ns/pods/"+name)
		warned := strings.Contains(strings.Join(events(c), "\n"),
			"Warning FailedDaemonPod Found failed daemon pod ns/"+name+" on node n1, will try to kill it")
		if again := i > 0; deleted == again || warned == again || (result.RequeueAfter > 0) != again {
			t.Errorf("%s: deleted %v, warned %v, again in %s", name, deleted, warned, result.RequeueAfter)
		}
		if err := c.pods.Raw().GetIndexer().Delete(p); err != nil {
			t.Fatal(err)
		}
		c.expect.Forget(ds.UID)
	}
}

// TestHashCollision: a revision of another template that has the name raises the collision count, and no pod is made.
func TestHashCollision(t *testing.T) {
	t.Parallel()
	taken := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "taken"},
		Data: runtime.RawExtension{Raw: []byte(`{"other":1}`)}}
	c, f, ds := stage(t, func(call controllertest.Call) (runtime.Object, error) {
		switch {
		case call.Method == "POST" && strings.HasSuffix(call.Path, "/controllerrevisions"):
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"},
				"taken")
		case call.Method == "GET":
			return taken, nil
		}
		return call.Object, nil
	})
	if _, err := c.Reconcile(t.Context(), controller.KeyOf(ds)); err == nil {
		t.Error("no error")
	}
	calls := f.Calls()
	last := calls[len(calls)-1]
	if put, ok := last.Object.(*appsv1.DaemonSet); !ok ||
		last.Name() != "PUT /apis/apps/v1/namespaces/ns/daemonsets/d/status" || *put.Status.CollisionCount != 1 {
		t.Errorf("last call %s %s", last.Name(), last.Body)
	}
}

// TestWaitsForItsOwnPods: as long as a pod it made is not in the cache, no second one is made.
func TestWaitsForItsOwnPods(t *testing.T) {
	t.Parallel()
	c, f, ds := stage(t, nil)
	for range 3 {
		if _, err := c.Reconcile(t.Context(), controller.KeyOf(ds)); err != nil {
			t.Fatal(err)
		}
	}
	made := slices.DeleteFunc(f.Names(), func(n string) bool { return n != "POST /api/v1/namespaces/ns/pods" })
	if len(made) != 1 {
		t.Errorf("%d pods made", len(made))
	}
}

// TestObservedGeneration: the status does not say that a generation was observed while a pod that was made for the one
// before is still to come.
func TestObservedGeneration(t *testing.T) {
	t.Parallel()
	c, f, ds := stage(t, nil)
	for _, generation := range []int64{1, 2} {
		ds = ds.DeepCopy()
		ds.Generation = generation
		controllertest.Put(t, c.sets, ds)
		if _, err := c.Reconcile(t.Context(), controller.KeyOf(ds)); err != nil {
			t.Fatal(err)
		}
		calls := f.Calls()
		put, ok := calls[len(calls)-1].Object.(*appsv1.DaemonSet)
		if !ok || put.Status.ObservedGeneration != 1 {
			t.Errorf("generation %d: last call %s %+v", generation, calls[len(calls)-1].Name(), put)
			continue
		}
		ds.Status.ObservedGeneration = put.Status.ObservedGeneration
	}
}

func TestEmptySelector(t *testing.T) {
	t.Parallel()
	c, f, ds := stage(t, nil)
	ds.Spec.Selector = &metav1.LabelSelector{}
	if _, err := c.Reconcile(t.Context(), controller.KeyOf(ds)); err != nil || len(f.Calls()) > 0 {
		t.Errorf("%v, calls %v", err, f.Names())
	}
	if got := events(c); len(got) != 1 || !strings.HasPrefix(got[0], "Warning SelectingAll") {
		t.Errorf("events %v", got)
	}
}
