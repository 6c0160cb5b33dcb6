package endpointslicemirroring

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

const (
	creates = "POST /apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
	deletes = "DELETE /apis/discovery.k8s.io/v1/namespaces/ns/endpointslices/s0"
)

// TestReconcile: which Endpoints are mirrored, with and without a slice from before.
func TestReconcile(t *testing.T) {
	t.Parallel()
	plain := func() *corev1.Endpoints { return eps(subset("10.0.0.1", 80)) }
	with := func(change func(*corev1.Endpoints)) *corev1.Endpoints { e := plain(); change(e); return e }
	service := func(selector map[string]string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"},
			Spec: corev1.ServiceSpec{Selector: selector}}
	}
	for name, c := range map[string]struct {
		endpoints *corev1.Endpoints
		service   *corev1.Service
		mirrored  bool
	}{
		"of a Service without selector": {plain(), service(nil), true},
		"said not to be skipped": {with(func(e *corev1.Endpoints) {
			e.Labels = map[string]string{discoveryv1.LabelSkipMirror: "false"}
		}), service(nil), true},
		"said to be skipped": {with(func(e *corev1.Endpoints) {
			e.Labels = map[string]string{discoveryv1.LabelSkipMirror: "true"}
		}), service(nil), false},
		"a leader's lock": {with(func(e *corev1.Endpoints) {
			e.Annotations = map[string]string{leaderAnnotation: "x"}
		}), service(nil), false},
		"with a selector": {plain(), service(map[string]string{"a": "b"}), false},
		"no Service":      {plain(), nil, false},
		"no Endpoints":    {nil, service(nil), false},
		"being deleted": {with(func(e *corev1.Endpoints) {
			e.DeletionTimestamp = new(metav1.Now())
		}), service(nil), false},
	} {
		for _, before := range []bool{false, true} {
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if s, ok := call.Object.(*discoveryv1.EndpointSlice); ok {
					s.Name, s.ResourceVersion = "made", "9"
					return s, nil
				}
				return &metav1.Status{}, nil
			}}
			ctl, err := New(fake.Deps(t, time.Unix(0, 0)), Config{MaxPerSubset: 1000})
			if err != nil {
				t.Fatal(err)
			}
			if c.endpoints != nil {
				controllertest.Put(t, ctl.endpoints, c.endpoints)
			}
			if c.service != nil {
				controllertest.Put(t, ctl.services, c.service)
			}
			// The cache is known to be at an earlier version than what is written.
			controllertest.Put(t, ctl.slices,
				&discoveryv1.EndpointSlice{
					ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "x", ResourceVersion: "5"}})
			if before {
				of := c.endpoints
				if of == nil {
					of = plain()
				}
				s := stored(t, of, 1000)[0]
				foreign := s.DeepCopy()
				foreign.Name, foreign.Labels[discoveryv1.LabelManagedBy] = "foreign", "somebody"
				controllertest.Put(t, ctl.slices, s, foreign)
			}
			var want []string
			if c.mirrored && !before {
				want = []string{creates}
			} else if !c.mirrored && before {
				want = []string{deletes}
			}
			// The second time the cache has not caught up: nothing may be done twice.
			for range 2 {
				if _, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "e"}); err != nil {
					t.Error(err)
				}
			}
			if got := fake.Names(); !slices.Equal(got, want) {
				t.Errorf("%s, mirrored before %t: %v, want %v", name, before, got, want)
			}
		}
	}
}

// TestTooMany: what is left out is said.
func TestTooMany(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{}
	ctl, err := New(fake.Deps(t, time.Unix(0, 0)), Config{MaxPerSubset: 2})
	if err != nil {
		t.Fatal(err)
	}
	controllertest.Put(t, ctl.endpoints, eps(subset("10.0.0.1 10.0.0.2 10.0.0.3", 80)))
	controllertest.Put(t, ctl.services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e"}})
	if _, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "e"}); err != nil {
		t.Fatal(err)
	}
	want := "Warning TooManyAddressesToMirror A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 1 addresses were skipped"
	if got := <-ctl.Events.(*record.FakeRecorder).Events; got != want {
		t.Errorf("event %q", got)
	}
	if s := fake.Calls()[0].Object.(*discoveryv1.EndpointSlice); !strings.HasSuffix(text(s), "10.0.0.1 10.0.0.2") {
		t.Error(text(s))
	}
}
