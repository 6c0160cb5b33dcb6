package cluster

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run", "lock")
	first, err := lockData(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockData(path); err == nil || !strings.Contains(err.Error(), "already running") {
		t.Errorf("a second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := lockData(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

// TestMachineLock: of two starts the second waits for the first, and no longer than its context lasts.
func TestMachineLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lockMachine(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockMachine(over, path); err == nil {
		t.Error("two have the lock")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := lockMachine(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}
