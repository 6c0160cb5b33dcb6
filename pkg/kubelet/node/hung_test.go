package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/runtime"
)

// deadRuntime refuses questions, or hangs.
type deadRuntime struct {
	hangs bool
	asked atomic.Int32
}

func (d *deadRuntime) Health(ctx context.Context) (runtime.Health, error) {
	d.asked.Add(1)
	if d.hangs {
		<-ctx.Done()
		return runtime.Health{}, ctx.Err()
	}
	return runtime.Health{}, errors.New("connection refused")
}

func (*deadRuntime) Version() runtime.Version { return runtime.Version{} }

// TestDeadRuntime: a runtime that hangs for 30 s makes the node NotReady, and a dead one is asked less and less often.
func TestDeadRuntime(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"},
				Status: corev1.NodeStatus{
					Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			d := &deadRuntime{hangs: hangs}
			n := &Node{cfg: Config{Client: kubelettest.Client{Interface: fake.NewClientset(node)}, Name: "n",
				Runtime: d, Machine: fakeMachine{}, Interval: 10 * time.Second,
				Report: 5 * time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler), Changed: notify.New()}}
			n.object.Store(node)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n.keepStatus(ctx)
			if conditionTrue(n.Object().Status.Conditions, corev1.NodeReady) {
				t.Error("the node is Ready")
			}
			if got := d.asked.Load(); got > 30 { // 18 until it waits for 5 s each time, 8 then
				t.Errorf("asked %d times in a minute", got)
			}
		})
	}
}

// failing gives errors while it is set to, and else says that all is well.
type failing struct{ fails atomic.Bool }

func (f *failing) Health(context.Context) (runtime.Health, error) {
	if f.fails.Load() {
		return runtime.Health{}, errors.New("connection refused")
	}
	return runtime.Health{RuntimeReady: true, NetworkReady: true}, nil
}

func (*failing) Version() runtime.Version { return runtime.Version{} }

// TestUnreadyAfter: a runtime counts as down when it had no good check for 30 s, not at its first error; and its lists
// of pods count by themselves, for a runtime may tell its state and yet hang at a list.
func TestUnreadyAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
		rt := &failing{}
		var relist error
		n := &Node{cfg: Config{Client: kubelettest.Client{Interface: fake.NewClientset(node)}, Name: "n", Runtime: rt,
			Machine: fakeMachine{}, Interval: 10 * time.Second,
			Relisted: func(time.Time) error {
				return relist
			}, Report: 5 * time.Minute, Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
		n.object.Store(node)
		is := func(when string, want bool) {
			t.Helper()
			if ready, err := n.syncStatus(t.Context()); err != nil || ready != want {
				t.Errorf("%s: ready %v, err %v", when, ready, err)
			}
		}
		is("at first", true)
		rt.fails.Store(true)
		is("at the first error", true)
		time.Sleep(29 * time.Second)
		is("after 29 s", true)
		time.Sleep(time.Second)
		is("after 30 s", false)
		rt.fails.Store(false)
		is("again well", true)
		relist = errors.New("pleg was last seen active 3m1s ago; threshold is 3m0s")
		is("without lists", false)
		if got := n.Object().Status.Conditions; !slices.ContainsFunc(got, func(c corev1.NodeCondition) bool {
			return c.Message == "PLEG is not healthy: pleg was last seen active 3m1s ago; threshold is 3m0s"
		}) {
			t.Error(got)
		}
	})
}

// silent is an API server that does not answer the first creation of a Node.
type silent struct {
	kubelettest.Client
	asked atomic.Int32
}

func (s *silent) CreateNode(ctx context.Context, node *corev1.Node) (*corev1.Node, error) {
	if s.asked.Add(1) == 1 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.Client.CreateNode(ctx, node)
}

// TestRegistrationGoesOn: neither a runtime that hangs nor a request without an answer holds the registration up for
// good.
func TestRegistrationGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &silent{Client: kubelettest.Client{Interface: fake.NewClientset()}}
		n := &Node{cfg: Config{Client: api, Name: "n", Runtime: &deadRuntime{hangs: true}, Machine: fakeMachine{},
			Now: time.Now, Log: slog.New(slog.DiscardHandler)}}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if !n.register(ctx) {
			t.Fatal("not registered in 2 min")
		}
		if node := n.Object(); node == nil || conditionTrue(node.Status.Conditions, corev1.NodeReady) {
			t.Errorf("registered as %+v", node)
		}
	})
}
