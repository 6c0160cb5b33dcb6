package main

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller/controllertest"
	"bonsai/pkg/controller/service"
)

// balancer: a service gets an address and a finalizer, loses both with its type, and goes.
func (w *world) balancer(t *testing.T) {
	ns := w.makeNamespace(t, "t-balancer")
	services := core.Services(w.Client)
	_, err := services.Create(t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer,
				Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	has := func(address string, finalizer bool) func() string {
		return func() string {
			s, err := services.Get(t.Context(), ns, "s")
			if err != nil {
				return err.Error()
			}
			got := ""
			for _, in := range s.Status.LoadBalancer.Ingress {
				got += in.IP + " " + string(*in.IPMode)
			}
			if got != address || slices.Contains(s.Finalizers, service.Finalizer) != finalizer {
				return fmt.Sprint(got, s.Finalizers)
			}
			return ""
		}
	}
	change := func(to corev1.ServiceType) {
		if _, err := services.Patch(t.Context(), ns, "s", types.MergePatchType,
			[]byte(`{"spec":{"type":"`+to+`"}}`)); err != nil {
			t.Fatal(err)
		}
	}
	controllertest.Eventually(t, "an address", has("10.200.0.1 VIP", true))
	change(corev1.ServiceTypeClusterIP)
	controllertest.Eventually(t, "no address", has("", false))
	change(corev1.ServiceTypeLoadBalancer)
	controllertest.Eventually(t, "an address again", has("10.200.0.1 VIP", true))
	if err := services.Delete(t.Context(), ns, "s", ""); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, "the end of the service", func() string {
		if _, err := services.Get(t.Context(), ns, "s"); !apierrors.IsNotFound(err) {
			return fmt.Sprint("still there: ", err)
		}
		return ""
	})
}
