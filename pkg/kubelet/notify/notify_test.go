package notify_test

import (
	"testing"

	"bonsai/pkg/kubelet/notify"
)

// TestSignal: notifications before a receive join, and none is lost.
func TestSignal(t *testing.T) {
	t.Parallel()
	s := notify.New()
	received := func() (n int) {
		for {
			select {
			case <-s:
				n++
			default:
				return n
			}
		}
	}
	for i, notifications := range []int{0, 1, 3, 1} {
		for range notifications {
			s.Notify()
		}
		if got, want := received(), min(notifications, 1); got != want {
			t.Errorf("round %d: %d received, want %d", i, got, want)
		}
	}
}
