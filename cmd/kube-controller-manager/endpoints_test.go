package main

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/apiclient/apps"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/apiclient/discovery"
	"bonsai/pkg/controller/controllertest"
)

// endpoints: both forms follow the pods behind a Service, ready or not.
func (w *world) endpoints(t *testing.T) {
	ns := w.makeNamespace(t, "t-endpoints")
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}},
	}}
	if _, err := core.Services(w.Client).Create(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	if _, err := apps.Deployments(w.Client).Create(t.Context(), webDeployment(ns, "web", 3)); err != nil {
		t.Fatal(err)
	}
	w.available(t, ns, "web", 3)
	w.expectEndpoints(t, ns, 3)
	if _, err := apps.Deployments(w.Client).Patch(t.Context(), ns, "web", types.MergePatchType,
		[]byte(`{"spec":{"replicas":0}}`)); err != nil {
		t.Fatal(err)
	}
	w.expectEndpoints(t, ns, 0)
	if err := core.Services(w.Client).Delete(t.Context(), ns, "web", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "no endpoints of a deleted Service", func() string {
		slices, err := discovery.EndpointSlices(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		eps, err2 := core.Endpoints(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || err2 != nil || len(slices)+len(eps) > 0 {
			return fmt.Sprint(len(slices), " slices, ", len(eps), " endpoints ", err, err2)
		}
		return ""
	})
}

func (w *world) expectEndpoints(t *testing.T, ns string, n int) {
	t.Helper()
	controllertest.Eventually(t, fmt.Sprint(n, " endpoints"), func() string {
		slices, err := discovery.EndpointSlices(w.Client).List(t.Context(), ns, metav1.ListOptions{})
		if err != nil || len(slices) != 1 {
			return fmt.Sprint(len(slices), " slices ", err)
		}
		s := slices[0]
		ready := 0
		for _, e := range s.Endpoints {
			if *e.Conditions.Ready {
				ready++
			}
		}
		if ready != n || n > 0 && *s.Ports[0].Port != 8080 {
			return fmt.Sprintf("%+v", s.Endpoints)
		}
		ep, err := core.Endpoints(w.Client).Get(t.Context(), ns, "web")
		if err != nil {
			return err.Error()
		}
		old := 0
		for _, sub := range ep.Subsets {
			old += len(sub.Addresses)
		}
		if old != n {
			return fmt.Sprintf("Endpoints have %d", old)
		}
		return ""
	})
}
