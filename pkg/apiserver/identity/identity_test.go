package identity

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/apiserver/registry/registrytest"
)

// TestRun: the Lease is as Kubernetes' server on a machine called "vm" makes it, it is renewed, and an ended one goes,
// whoever's it was.
func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lease := func(name string, labels map[string]string, age time.Duration) *coordinationv1.Lease {
			return &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: labels},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("x"), LeaseDurationSeconds: ptr.To(int32(3600)),
					RenewTime: &metav1.MicroTime{Time: time.Now().Add(-age)}}}
		}
		ours := map[string]string{label: value}
		leases := registrytest.Of(t, "leases.coordination.k8s.io", lease("apiserver-dead", ours, 61*time.Minute),
			lease("apiserver-other", ours, 10*time.Minute),
			lease("foreign", nil, 2*time.Hour))
		id, err := New(Config{Stores: registrytest.Stores{leases}, Hostname: "vm", Instance: "i", Now: time.Now,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- id.Run(ctx) }()
		get := func(name string) *coordinationv1.Lease {
			obj, err := leases.Get(ctx, "kube-system", name)
			if apierrors.IsNotFound(err) {
				return nil
			}
			if err != nil {
				t.Fatal(err)
			}
			return obj.(*coordinationv1.Lease)
		}
		synctest.Wait()
		first := get("apiserver-lphjr5z7h3imqn7sokpnsue3ha")
		if first == nil {
			t.Fatal("no Lease")
		}
		if first.Labels[label] != value || first.Labels["kubernetes.io/hostname"] != "vm" ||
			*first.Spec.HolderIdentity != first.Name+"_i" || *first.Spec.LeaseDurationSeconds != 3600 {
			t.Errorf("%+v %+v", first.Labels, first.Spec)
		}
		if get("apiserver-dead") != nil || get("apiserver-other") == nil || get("foreign") == nil {
			t.Error("not exactly the ended one has gone")
		}
		time.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		if again := get(first.Name); time.Since(again.Spec.RenewTime.Time) > renewEvery {
			t.Errorf("renewed %v ago", time.Since(again.Spec.RenewTime.Time))
		}
		if get("apiserver-other") != nil {
			t.Error("the other server's has ended and is still there")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
