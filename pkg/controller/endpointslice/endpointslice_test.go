package endpointslice

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// stage is a controller with the Service ns/web and one pod behind it in its caches. The server names what is made
// web-1, web-2, … and counts versions from 10.
func stage(t *testing.T) (*Controller, *controllertest.Fake) {
	t.Helper()
	n := 0
	f := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		s, ok := call.Object.(*discoveryv1.EndpointSlice)
		if !ok {
			return call.Object, nil
		}
		if n++; s.Name == "" {
			s.Name = fmt.Sprint("web-", n)
		}
		s.ResourceVersion = fmt.Sprint(9 + n)
		return s, nil
	}}
	c, err := New(f.Deps(t, time.Unix(1_000_000, 0)), 100)
	if err != nil {
		t.Fatal(err)
	}
	svc, p := service(), readyPod(1)
	svc.Spec.Selector, p.Labels = map[string]string{"app": "web"}, map[string]string{"app": "web"}
	controllertest.Put(t, c.services, svc)
	controllertest.Put(t, c.pods, p)
	controllertest.Put(t, c.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	return c, f
}

func reconcile(t *testing.T, c *Controller) {
	t.Helper()
	if _, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "web"}); err != nil {
		t.Fatal(err)
	}
}

const post = "POST /apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"

// foreign is a slice of another Service; caching it moves the cache on to its version.
func foreign(version string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other", ResourceVersion: version}}
}

// TestWaitsForItsOwnSlices: as long as the cache is behind what was written, nothing is written again, also not for
// another Service of the same name.
func TestWaitsForItsOwnSlices(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		c, f := stage(t)
		controllertest.Put(t, c.slices, foreign("5"))
		reconcile(t, c)
		if replaced {
			svc, _ := c.services.Get(controller.Key{Namespace: "ns", Name: "web"})
			if err := c.services.Raw().GetIndexer().Delete(svc); err != nil {
				t.Fatal(err)
			}
			reconcile(t, c)
			svc = svc.DeepCopy()
			svc.UID = "svc2"
			controllertest.Put(t, c.services, svc)
		}
		reconcile(t, c)
		if got := f.Names(); !slices.Equal(got, []string{post}) {
			t.Errorf("replaced %v: before the cache has it: %v", replaced, got)
		}
		// It was made, and somebody deleted it: the cache is past it.
		controllertest.Put(t, c.slices, foreign("20"))
		reconcile(t, c)
		if got := f.Names(); !slices.Equal(got, []string{post, post}) {
			t.Errorf("replaced %v: after the cache is past it: %v", replaced, got)
		}
	}
}

// TestTrigger: a slice says when the change happened that it was written for.
func TestTrigger(t *testing.T) {
	t.Parallel()
	c, f := stage(t)
	svc, _ := c.services.Get(controller.Key{Namespace: "ns", Name: "web"})
	svc = svc.DeepCopy()
	svc.CreationTimestamp = metav1.NewTime(time.Unix(1_000_000, 0))
	controllertest.Put(t, c.services, svc)
	reconcile(t, c)
	made := f.Calls()[0].Object.(*discoveryv1.EndpointSlice)
	if got := made.Annotations[corev1.EndpointsLastChangeTriggerTime]; got != "1970-01-12T13:46:40Z" {
		t.Errorf("the time is %q", got)
	}
}

// TestEndingNamespace: nothing is made in a namespace that is ending.
func TestEndingNamespace(t *testing.T) {
	t.Parallel()
	c, f := stage(t)
	controllertest.Put(t, c.namespaces,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"},
			Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}})
	if reconcile(t, c); len(f.Calls()) > 0 {
		t.Errorf("calls %v", f.Names())
	}
}

// TestReplacedService: the slices of an earlier Service of the same name go to the new one, before the garbage
// collector takes them (kubectl replace --force).
func TestReplacedService(t *testing.T) {
	t.Parallel()
	svc, again, v4 := service(), service(), discoveryv1.AddressTypeIPv4
	again.UID = "svc2"
	pods := []*corev1.Pod{readyPod(1), readyPod(2)}
	srv := &server{slices: map[string]*discoveryv1.EndpointSlice{}}
	srv.apply(plan(svc, v4, group(svc, v4, pods, noZone), nil, 100))
	srv.apply(plan(again, v4, group(again, v4, pods, noZone), srv.list(), 100))
	if len(srv.slices) != 1 {
		t.Errorf("%d slices", len(srv.slices))
	}
	for _, s := range srv.list() {
		if !metav1.IsControlledBy(s, again) || len(s.OwnerReferences) != 1 || len(s.Endpoints) != 2 {
			t.Errorf("owners %+v of %d endpoints", s.OwnerReferences, len(s.Endpoints))
		}
	}
}
