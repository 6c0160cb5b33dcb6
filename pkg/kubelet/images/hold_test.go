package images

import (
	"io"
	"log/slog"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

func TestAHeldImageIsNotRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{present: map[string]bool{"x:1": true}}
		m := New(Config{Service: s, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		pulls := func() int { return len(s.auths) }
		ensure := func() (*runtime.Image, error) {
			return m.Ensure(t.Context(), &corev1.Pod{}, "x:1", corev1.PullIfNotPresent, nil, func(_, _, _ string) {})
		}
		img, release, err := m.Hold(t.Context(), ensure)
		if err != nil {
			t.Fatal(err)
		}
		remove := func() error { delete(s.present, "x:1"); return nil }
		if err := m.whenFree(img.ID, remove); err != nil || !s.present["x:1"] {
			t.Fatal("an image that becomes a container was removed", err)
		}
		release()

		// While it is being removed nobody gets hold of it; who wanted it finds that it must be pulled.
		begun, end := make(chan struct{}), make(chan struct{})
		removed := make(chan error)
		go func() {
			removed <- m.whenFree(img.ID, func() error { close(begun); <-end; return remove() })
		}()
		<-begun
		held := make(chan error)
		go func() {
			_, release, err := m.Hold(t.Context(), ensure)
			if err == nil {
				release()
			}
			held <- err
		}()
		synctest.Wait()
		if pulls() != 0 {
			t.Fatal("pulled although it is there")
		}
		close(end)
		if err := <-removed; err != nil {
			t.Fatal(err)
		}
		if err := <-held; err != nil || pulls() != 1 || !s.present["x:1"] {
			t.Errorf("%d pulls, %v", pulls(), err)
		}
		if len(m.holds.users) != 0 || len(m.holds.going) != 0 {
			t.Error("something is still held")
		}
	})
}
