package endpoints

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const (
	create = "POST /api/v1/namespaces/ns/endpoints"
	update = "PUT /api/v1/namespaces/ns/endpoints/web"
	remove = "DELETE /api/v1/namespaces/ns/endpoints/web"
)

// ours is what the controller itself would have written for service and readyPod(1).
func ours() *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "e1", ResourceVersion: "7"}}
	describe(e, service(), []*corev1.Pod{readyPod(1)})
	return e
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	endpoints := schema.GroupResource{Resource: "endpoints"}
	for _, c := range []struct {
		name     string
		change   func(*corev1.Service)
		noSvc    bool
		ending   bool
		have     *corev1.Endpoints
		answer   error
		want     []string
		fails    bool
		reported bool
	}{
		{name: "new", want: []string{create}},
		{name: "as it is", have: ours()},
		{name: "changed", have: func() *corev1.Endpoints {
			e := ours()
			e.Subsets = nil
			return e
		}(), want: []string{update}},
		{name: "no selector: somebody else's", change: func(s *corev1.Service) {
			s.Spec.Selector = nil
		}, have: &corev1.Endpoints{ObjectMeta: ours().ObjectMeta}},
		{name: "external name", change: func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName }},
		{name: "service is going", change: func(s *corev1.Service) {
			s.DeletionTimestamp = &now
		}, have: &corev1.Endpoints{ObjectMeta: ours().ObjectMeta}},
		{name: "service gone", noSvc: true, have: ours(), want: []string{remove}},
		{name: "service gone, endpoints too", noSvc: true, have: ours(),
			answer: apierrors.NewNotFound(endpoints, "web"), want: []string{remove}},
		{name: "service gone, endpoints recreated", noSvc: true, have: ours(),
			answer: apierrors.NewConflict(endpoints, "web", nil), want: []string{remove}},
		{name: "service gone, deletion refused", noSvc: true, have: ours(),
			answer: apierrors.NewForbidden(endpoints, "web", nil), want: []string{remove}, fails: true},
		{name: "foreign", noSvc: true, have: func() *corev1.Endpoints {
			e := ours()
			delete(e.Labels, managedByLabel)
			return e
		}()},
		{name: "managed by another", noSvc: true, have: func() *corev1.Endpoints {
			e := ours()
			e.Labels[managedByLabel] = "me"
			return e
		}()},
		{name: "created meanwhile", answer: apierrors.NewAlreadyExists(endpoints, "web"), want: []string{create},
			fails: true},
		{name: "refused", answer: apierrors.NewForbidden(endpoints, "web", nil), want: []string{create}, fails: true,
			reported: true},
		{name: "namespace is going", answer: controllertest.Ending(), want: []string{create}},
		{name: "namespace is known to be going", ending: true},
		{name: "namespace is known to be going, changed", ending: true, have: func() *corev1.Endpoints {
			e := ours()
			e.Subsets = nil
			return e
		}(), want: []string{update}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				return call.Object, c.answer
			}}
			ctl, err := New(fake.Deps(t, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			stranger := readyPod(2)
			stranger.Labels = nil
			controllertest.Put(t, ctl.pods, readyPod(1), stranger)
			if c.ending {
				controllertest.Put(t, ctl.namespaces,
					&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"},
						Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}})
			}
			if c.have != nil {
				controllertest.Put(t, ctl.endpoints, c.have)
			}
			if !c.noSvc {
				svc := service()
				if c.change != nil {
					c.change(svc)
				}
				controllertest.Put(t, ctl.services, svc)
			}
			_, err = ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "web"})
			if (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			if got := fake.Names(); !slices.Equal(got, c.want) {
				t.Fatalf("calls %v, want %v", got, c.want)
			}
			if got := len(ctl.Events.(*record.FakeRecorder).Events) == 1; got != c.reported {
				t.Errorf("an event: %v, want %v", got, c.reported)
			}
			for _, call := range fake.Calls() {
				checkCall(t, call)
			}
		})
	}
}

// checkCall looks at what a call carries.
func checkCall(t *testing.T, call controllertest.Call) {
	switch o := call.Object.(type) {
	case *corev1.Endpoints:
		if got := show(o.Subsets); got != "http/TCP:8080 ready 10.1.0.1" {
			t.Errorf("wrote %s", got)
		}
		if call.Name() == update && o.ResourceVersion != "7" {
			t.Errorf("updated version %q blindly", o.ResourceVersion)
		}
	case *metav1.DeleteOptions:
		if o.Preconditions == nil || *o.Preconditions.UID != "e1" {
			t.Errorf("deleted with %+v: may hit another of that name", o.Preconditions)
		}
	default:
		t.Errorf("%s sends %T", call.Name(), o)
	}
}
