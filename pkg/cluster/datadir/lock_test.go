package datadir

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLock: a data directory has one supervisor, and is free when that has gone.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run", "lock")
	first, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("a second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
