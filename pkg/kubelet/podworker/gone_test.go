package podworker

import (
	"context"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A pod that arrives while its traces are removed waits: else it would lose what it has just made.
func TestAPodBeginsAfterTheRemovalOfItsTraces(t *testing.T) {
	t.Parallel()
	s := &steps{}
	run(t, s, func(w *Workers) {
		begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			done <- w.WhenGone("a", func() error {
				s.note("remove:a")
				close(begun)
				<-end
				s.note("removed:a")
				return nil
			})
		}()
		<-begun
		if err := w.WhenGone("a", func() error { s.note("twice"); return nil }); err != nil {
			t.Error(err)
		}
		w.Update(pod("a"))
		w.Update(pod("b"))
		expect(t, s, "remove:a sync:b")
		close(end)
		if err := <-done; err != nil {
			t.Error(err)
		}
		expect(t, s, "remove:a sync:b removed:a sync:a")
	})
}

func TestWhatAPodHasStaysWhileItsWorkerKnowsIt(t *testing.T) {
	t.Parallel()
	ended := false
	s := &steps{}
	s.sync = func(_ context.Context, _ *corev1.Pod) (Outcome, error) { return Outcome{Ended: ended}, nil }
	run(t, s, func(w *Workers) {
		tries := func(when func(types.UID, func() error) error) (done bool) {
			if err := when("a", func() error { done = true; return nil }); err != nil {
				t.Error(err)
			}
			return done
		}
		w.Update(pod("a"))
		synctest.Wait()
		if tries(w.WhenGone) || tries(w.WhenFinished) {
			t.Error("taken from a running pod")
		}
		ended = true
		w.Wake("a")
		synctest.Wait()
		if tries(w.WhenGone) || !tries(w.WhenFinished) {
			t.Error("a finished pod keeps its directory and needs no cgroup")
		}
		w.Remove(pod("a"))
		synctest.Wait()
		if !tries(w.WhenGone) || !tries(w.WhenFinished) {
			t.Error("a pod that is gone needs nothing")
		}
	})
}
