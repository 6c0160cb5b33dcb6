package node

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
)

// The lease is the node's heartbeat: https://kubernetes.io/docs/concepts/architecture/leases/#node-heart-beats.
func TestLeaseIsMadeRenewedAndTakenBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	api := fake.NewClientset()
	now := time.Unix(1000, 0)
	n := &Node{cfg: Config{Client: kubelettest.Client{Interface: api}, Name: "n", LeaseDuration: 40 * time.Second,
		Now: func() time.Time {
			return now
		}, Log: slog.New(slog.DiscardHandler)}}
	n.object.Store(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}})
	leases := api.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	check := func(step string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		l, err := leases.Get(ctx, "n", metav1.GetOptions{})
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if *l.Spec.HolderIdentity != "n" || *l.Spec.LeaseDurationSeconds != 40 || !l.Spec.RenewTime.Time.Equal(now) ||
			len(l.OwnerReferences) != 1 || l.OwnerReferences[0].UID != "u" {
			t.Errorf("%s: %+v", step, l)
		}
	}
	held, err := n.renewLease(ctx, nil)
	check("made", err)
	now = now.Add(10 * time.Second)
	held, err = n.renewLease(ctx, held)
	check("renewed", err)
	now = now.Add(10 * time.Second)
	_, err = n.renewLease(ctx, nil)
	check("taken over", err)
	if err := leases.Delete(ctx, "n", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	held, err = n.renewLease(ctx, held)
	if err == nil || held != nil {
		t.Fatalf("a lost lease must be read again: %v, %v", held, err)
	}
	_, err = n.renewLease(ctx, held)
	check("made again", err)
}

// hanging is an API server that takes requests and does not answer.
type hanging struct {
	kubelettest.Client
	tries atomic.Int32
}

func (h *hanging) Lease(ctx context.Context, _, _ string) (*coordinationv1.Lease, error) {
	h.tries.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestLeaseIsTriedAgainWhileItHolds: a request that hangs is given up in time for others before the lease has run out.
func TestLeaseIsTriedAgainWhileItHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{}
		n := &Node{cfg: Config{Client: h, Name: "n", LeaseDuration: 40 * time.Second, Now: time.Now,
			Log: slog.New(slog.DiscardHandler)}}
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		n.keepLease(ctx)
		if got := h.tries.Load(); got < 3 {
			t.Errorf("%d tries in a lease's length", got)
		}
	})
}
