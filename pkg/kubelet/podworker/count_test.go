package podworker

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Pods are counted by where they are, and by who has told of them: one that the runtime alone had stays such to its
// end.
func TestCount(t *testing.T) {
	t.Parallel()
	s := &steps{terminate: func(_ context.Context, p *corev1.Pod, _ time.Duration) error {
		if p.UID != "ended" {
			time.Sleep(5 * time.Second)
		}
		return nil
	}}
	s.sync = func(_ context.Context, p *corev1.Pod) (Outcome, error) { return Outcome{Ended: p.UID == "ended"}, nil }
	run(t, s, func(w *Workers) {
		w.Update(pod("runs"))
		w.Update(static("manifest"))
		w.Update(pod("ended"))
		w.Update(pod("deleted"))
		w.Update(deleted(pod("deleted"), 9))
		w.Update(pod("gone"))
		w.Remove(pod("gone"))
		w.Remove(pod("orphan"))
		w.Remove(static("old"))
		w.Update(static("old"))
		synctest.Wait()
		want := map[Kind]int{{}: 1, {Static: true}: 1, {State: Finished}: 1, {State: Terminating}: 1,
			{State: Terminating, Removed: true}:                            1,
			{State: Terminating, Removed: true, Found: true}:               1,
			{State: Terminating, Removed: true, Found: true, Static: true}: 1}
		if got := w.Count(); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		time.Sleep(time.Minute)
		want = map[Kind]int{{}: 1, {Static: true}: 2, {State: Finished}: 2}
		if got := w.Count(); !maps.Equal(got, want) {
			t.Errorf("when they have ended: %v, want %v", got, want)
		}
	})
}
