package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/kubelet/runtime"
)

// TestShowInUse: a volume that is about to be mounted is on the Node long before the status' next turn, and what is in
// use stays there while it cannot be read.
func TestShowInUse(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	client, rt := fake.NewClientset(), &fakeRuntime{}
	numberVersions(client)
	rt.set(runtime.Health{RuntimeReady: true, NetworkReady: true})
	type inUse struct {
		names []corev1.UniqueVolumeName
		err   error
	}
	var now atomic.Pointer[inUse]
	now.Store(&inUse{})
	n, err := New(Config{Client: kubelettest.Client{Interface: client}, Name: "n1",
		IPs: []net.IP{net.ParseIP("10.1.2.3")}, Runtime: rt, Machine: fakeMachine{}, Version: "v1.36.3",
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Interval: time.Hour,
		VolumesInUse: func() ([]corev1.UniqueVolumeName, error) { return now.Load().names, now.Load().err }})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	<-n.Registered()
	waitUntil(t, "the node Ready", func() bool { return conditionTrue(n.Object().Status.Conditions, corev1.NodeReady) })

	now.Store(&inUse{names: []corev1.UniqueVolumeName{"a"}})
	if err := n.ShowInUse(ctx, "a"); err != nil {
		t.Error(err)
	}
	now.Store(&inUse{err: errors.New("no disk")})
	if _, err := n.syncStatus(ctx); err != nil ||
		!slices.Equal(n.Object().Status.VolumesInUse, []corev1.UniqueVolumeName{"a"}) {
		t.Errorf("what could not be read is not in use any more: %v, %v", n.Object().Status.VolumesInUse, err)
	}
	now.Store(&inUse{names: []corev1.UniqueVolumeName{"c"}, err: errors.New("one record is unreadable")})
	if err := n.ShowInUse(ctx,
		"c"); err != nil || !slices.Equal(n.Object().Status.VolumesInUse, []corev1.UniqueVolumeName{"a", "c"}) {
		t.Errorf("beside what cannot be read: %v, %v", n.Object().Status.VolumesInUse, err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	if err := n.ShowInUse(ended, "b"); !errors.Is(err, context.Canceled) {
		t.Errorf("a volume that the Node does not show: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
