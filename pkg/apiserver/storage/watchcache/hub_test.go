package watchcache

import "testing"

// TestHubResetWakes: a reader that waits for the revision at which the hub starts over is woken by that.
func TestHubResetWakes(t *testing.T) {
	t.Parallel()
	var h hub
	waited := make(chan error)
	go func() { waited <- h.wait(t.Context(), 3) }()
	for waiting := 0; waiting == 0; {
		h.mu.Lock()
		waiting = len(h.waiters)
		h.mu.Unlock()
	}
	h.reset(3)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
}
