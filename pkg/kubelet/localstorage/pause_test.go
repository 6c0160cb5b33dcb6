package localstorage

import (
	"testing"
	"time"
)

// A slow round, as on a busy disk, puts the next one off, but not so long that a pod fills the disk unseen.
func TestPause(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]time.Duration{0: 10 * time.Second, time.Second: 20 * time.Second,
		30 * time.Second: time.Minute} {
		if got := pause(took); got != want {
			t.Errorf("after a round of %s: %s, want %s", took, got, want)
		}
	}
}
