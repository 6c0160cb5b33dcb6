package machine

import (
	"context"
	"path/filepath"
	"testing"
)

// TestMachineLock: of two starts the second waits for the first, and no longer than its context lasts.
func TestMachineLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(over, path); err == nil {
		t.Error("two have the lock")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}
