package podworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// node is a node whose runtime fails at times. It checks that nothing is done to a pod at the same time as anything
// else.
type node struct {
	t    *testing.T
	mu   sync.Mutex
	busy map[types.UID]string
	runs map[types.UID]bool // has something on the node
}

func (n *node) do(ctx context.Context, uid types.UID, what string, f func()) error {
	n.mu.Lock()
	if n.busy[uid] != "" {
		n.t.Errorf("pod %s: %s during %s", uid, what, n.busy[uid])
	}
	n.busy[uid] = what
	n.mu.Unlock()
	select {
	case <-time.After(time.Duration(rand.IntN(300)) * time.Millisecond):
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.busy, uid)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if rand.IntN(10) == 0 {
		return errors.New("rpc error: code = Unavailable")
	}
	f()
	return nil
}

func (n *node) Sync(ctx context.Context, p *corev1.Pod) (Outcome, error) {
	return Outcome{}, n.do(ctx, p.UID, "sync", func() { n.runs[p.UID] = true })
}
func (n *node) Terminate(ctx context.Context, p *corev1.Pod, _ time.Duration) error {
	return n.do(ctx, p.UID, "terminate", func() {})
}
func (n *node) Cleanup(ctx context.Context, p *corev1.Pod) error {
	return n.do(ctx, p.UID, "cleanup", func() {})
}
func (n *node) Finish(ctx context.Context, p *corev1.Pod) error {
	return n.do(ctx, p.UID, "finish", func() {})
}
func (n *node) Forget(ctx context.Context, p *corev1.Pod) error {
	return n.do(ctx, p.UID, "forget", func() { delete(n.runs, p.UID) })
}

// clean is what housekeeping does to a pod that is gone.
func (n *node) clean(ctx context.Context, uid types.UID) error {
	return n.do(ctx, uid, "clean", func() { delete(n.runs, uid) })
}

// TestPodsComeAndGo: pods are added, changed, deleted, removed and brought back while housekeeping removes what is left
// and steps fail. In the end what is wanted runs, and nothing else has left anything.
func TestPodsComeAndGo(t *testing.T) {
	t.Parallel()
	for name, podOf := range map[string]func(types.UID) *corev1.Pod{"of the API": pod, "static": static} {
		synctest.Test(t, func(t *testing.T) {
			n := &node{t: t, busy: map[types.UID]string{}, runs: map[types.UID]bool{}}
			w := New(func(*corev1.Pod) {}, &steps{}, slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- w.Run(ctx, n) }()
			var clients sync.WaitGroup
			var mu sync.Mutex
			wanted := map[types.UID]bool{}
			for c := range 8 { // each tells of its own pod, as a source tells of one pod in order
				uid := types.UID(fmt.Sprint(c))
				one := podOf(uid)
				one.Name = "p" + string(uid)
				clients.Go(func() {
					for range 200 {
						time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
						want := true
						switch rand.IntN(6) {
						case 0, 1:
							w.Update(one)
						case 2:
							w.Wake(uid)
							continue
						case 3:
							w.Update(deleted(one, rand.Int64N(30)))
							w.Remove(one)
							want = false
						default:
							w.Remove(one)
							want = false
						}
						mu.Lock()
						wanted[uid] = want
						mu.Unlock()
					}
				})
				clients.Go(func() {
					for range 200 {
						time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
						_ = w.WhenGone(uid, func() error { return n.clean(ctx, uid) }) // its failures are made up
					}
				})
			}
			clients.Wait()
			time.Sleep(10 * time.Minute) // back-offs end
			synctest.Wait()
			for uid, want := range wanted {
				st, known := w.state(uid)
				if want != known || want && st != Syncing || n.runs[uid] != want {
					t.Errorf("%s, pod %s: wanted %v, known %v in state %v, runs %v", name, uid, want, known, st,
						n.runs[uid])
				}
			}
			if len(w.taken) != 0 || len(w.names) > len(wanted) {
				t.Errorf("left: %v %v", w.taken, w.names)
			}
			cancel()
			<-done
		})
	}
}
