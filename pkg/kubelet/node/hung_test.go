package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
)

// deadRuntime refuses questions, or hangs.
type deadRuntime struct {
	hangs bool
	asked atomic.Int32
}

func (d *deadRuntime) RuntimeState(ctx context.Context) (RuntimeState, error) {
	d.asked.Add(1)
	if d.hangs {
		<-ctx.Done()
		return RuntimeState{}, ctx.Err()
	}
	return RuntimeState{}, errors.New("connection refused")
}

// TestDeadRuntime: a runtime that hangs for 30 s makes the node NotReady, and a dead one is asked less and less often.
func TestDeadRuntime(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			d := &deadRuntime{hangs: hangs}
			n := &Node{cfg: Config{Client: kubelettest.Client{Interface: fake.NewClientset(node)}, Name: "n", Runtime: d, Machine: fakeMachine{}, Interval: 10 * time.Second,
				Report: 5 * time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler)}, poke: make(chan struct{}, 1)}
			n.object.Store(node)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n.keepStatus(ctx)
			if conditionTrue(n.Object().Status.Conditions, corev1.NodeReady) {
				t.Error("the node is Ready")
			}
			if got := d.asked.Load(); got > 20 {
				t.Errorf("asked %d times in a minute", got)
			}
		})
	}
}
