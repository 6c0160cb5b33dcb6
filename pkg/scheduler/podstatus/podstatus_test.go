package podstatus

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slowAPI takes a second for each write and records them when they are done.
type slowAPI struct {
	mu    sync.Mutex
	calls []string
}

func (a *slowAPI) PatchStatus(ctx context.Context, pod *corev1.Pod, c *corev1.PodCondition, nominated *string) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	a.note(said(pod, c, nominated))
	return nil
}

func (a *slowAPI) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, what)
}

func said(pod *corev1.Pod, c *corev1.PodCondition, nominated *string) string {
	out := pod.Name
	if c != nil {
		out += " " + c.Message
	}
	if nominated != nil {
		out += fmt.Sprintf(" on %q", *nominated)
	}
	return out
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name, UID: types.UID(name)}}
}

func why(message string) *corev1.PodCondition { return &corev1.PodCondition{Message: message} }

func inBubble(t *testing.T, limit int, f func(t *testing.T, ctx context.Context, w *Writer, a *slowAPI)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &slowAPI{}
		w := New(a, limit, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		f(t, ctx, w, a)
		cancel()
		w.Wait()
		if len(w.pods) > 0 {
			t.Errorf("%d pods are remembered for ever", len(w.pods))
		}
	})
}

func (a *slowAPI) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.calls, want) {
		t.Errorf("calls %q, want %q", a.calls, want)
	}
}

// TestWritesOfAPodAreInOrder: what comes while one is under way is written after it, and only the newest of it.
func TestWritesOfAPodAreInOrder(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, ctx context.Context, w *Writer, a *slowAPI) {
		w.Put(ctx, pod("p"), why("first"), nil)
		synctest.Wait()
		w.Put(ctx, pod("p"), why("second"), new("n1"))
		w.Put(ctx, pod("q"), why("other"), nil)
		w.Put(ctx, pod("p"), why("third"), nil)
		time.Sleep(time.Second)
		synctest.Wait()
		slices.Sort(a.calls)
		a.expect(t, "p first", "q other")
		time.Sleep(time.Second)
		a.expect(t, "p first", "q other", `p third on "n1"`)
	})
}

// TestNothingIsWrittenBesideOrAfterABinding: a binding waits for the write under way, drops what waits, and what comes
// meanwhile is only written if it fails.
func TestNothingIsWrittenBesideOrAfterABinding(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, ctx context.Context, w *Writer, a *slowAPI) {
		w.Put(ctx, pod("p"), why("first"), nil)
		synctest.Wait()
		w.Put(ctx, pod("p"), why("second"), nil)
		w.Hold("p")
		a.note("bound")
		w.Put(ctx, pod("p"), nil, new(""))
		w.Release(ctx, "p", true)
		time.Sleep(time.Minute)
		a.expect(t, "p first", "bound")

		w.Hold("q")
		w.Put(ctx, pod("q"), why("after a failed binding"), nil)
		time.Sleep(time.Minute)
		a.expect(t, "p first", "bound")
		w.Release(ctx, "q", false)
		time.Sleep(time.Minute)
		a.expect(t, "p first", "bound", "q after a failed binding")
	})
}

// TestWritesEndWithTheirContext: another process may lead by then.
func TestWritesEndWithTheirContext(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, ctx context.Context, w *Writer, a *slowAPI) {
		ctx, cancel := context.WithCancel(ctx)
		for i := range 3 {
			w.Put(ctx, pod(fmt.Sprint("p", i)), why("x"), nil)
		}
		synctest.Wait()
		cancel()
		w.Wait()
		time.Sleep(time.Minute)
		a.expect(t)
	})
}
