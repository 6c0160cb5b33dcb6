package podworker

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// A manifest that is moved away and back makes the same pod, with the same uid, while the first one still ends.
func TestAPodComesBackAfterItsRemoval(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]*corev1.Pod{"static": static("a"), "of the API": pod("a")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &steps{terminate: func(context.Context, *corev1.Pod, time.Duration) error {
				time.Sleep(5 * time.Second)
				return nil
			}}
			run(t, s, func(w *Workers) {
				w.Update(one)
				expect(t, s, "sync:a")
				w.Remove(one)
				time.Sleep(time.Second)
				w.Update(one)
				time.Sleep(5 * time.Second)
				expect(t, s, "sync:a terminate:a:30s cleanup:a forget:a return:a sync:a")
				if st, known := w.state("a"); !known || st != Syncing {
					t.Errorf("state %v, %v", st, known)
				}
			})
		})
	}
}

func TestAPodThatComesBackAndGoesAgainIsNotRun(t *testing.T) {
	t.Parallel()
	s := &steps{terminate: func(context.Context, *corev1.Pod, time.Duration) error {
		time.Sleep(5 * time.Second)
		return nil
	}}
	run(t, s, func(w *Workers) {
		w.Update(static("a"))
		expect(t, s, "sync:a")
		w.Remove(static("a"))
		w.Update(static("a"))
		w.Remove(static("a"))
		w.Update(static("b")) // the edited manifest
		time.Sleep(6 * time.Second)
		got := s.text()
		if got != "sync:a terminate:a:30s cleanup:a sync:b forget:a" &&
			got != "sync:a terminate:a:30s cleanup:a forget:a sync:b" {
			t.Errorf("got %s", got)
		}
	})
}
