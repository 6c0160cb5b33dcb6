package podautoscaler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiclient/served"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestWaitsForItsOwnStatus: a cache that does not show the last status yet decides nothing.
func TestWaitsForItsOwnStatus(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		switch o := call.Object.(type) {
		case *autoscalingv2.HorizontalPodAutoscaler:
			o.ResourceVersion = "9"
			return o, nil
		case nil:
			return &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"},
				Spec: autoscalingv1.ScaleSpec{Replicas: 5}}, nil
		}
		return call.Object, nil
	}}
	c, err := New(fake.Deps(t, time.Now()), Config{Period: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c.kinds = served.NewFinder(func(context.Context) (*served.Catalog, error) {
		return served.NewCatalog(served.Resource{
			GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment",
			Namespaced: true, Verbs: []string{"get"}, Subresources: []string{"scale"}}), nil
	}, time.Now)
	a := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "h", ResourceVersion: "5"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3,
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment",
				Name: "d"}}}
	controllertest.Put(t, c.autoscalers, a)
	look := func() (time.Duration, []string) {
		before := len(fake.Names())
		r, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "h"})
		if err != nil {
			t.Fatal(err)
		}
		return r.RequeueAfter, fake.Names()[before:]
	}
	stored := func(calls []string) bool {
		return slices.ContainsFunc(calls, func(c string) bool {
			return strings.HasPrefix(c, "PUT ") && strings.HasSuffix(c, "/horizontalpodautoscalers/h/status")
		})
	}
	if _, calls := look(); !stored(calls) {
		t.Fatalf("the first look made the calls %v", calls)
	}
	if wait, calls := look(); len(calls) > 0 || wait != behind {
		t.Errorf("behind its own status it made the calls %v, and comes back in %v", calls, wait)
	}
	a = a.DeepCopy()
	a.ResourceVersion = "9"
	controllertest.Put(t, c.autoscalers, a)
	if wait, calls := look(); !stored(calls) || wait != 15*time.Second {
		t.Errorf("with its own status it made the calls %v, and comes back in %v", calls, wait)
	}
}
