package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
)

// TestLock: one kubelet holds the lock, another one waits for it, and a stop ends the wait.
func TestLock(t *testing.T) {
	t.Parallel()
	o := &lockOptions{path: filepath.Join(t.TempDir(), "lock")}
	log := slog.New(slog.DiscardHandler)
	release, err := o.take(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*lockAgain)
		defer cancel()
		if _, err := o.take(ctx, log); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the lock is held: %v", err)
		}
	})
	release()
	again, err := o.take(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if _, err := (&lockOptions{path: filepath.Join(t.TempDir(), "none", "lock")}).take(t.Context(), log); err == nil {
		t.Error("a lock in a directory that there is not")
	}
}

// TestLockContention: the kubelet ends when somebody opens the file, or with its context.
func TestLockContention(t *testing.T) {
	t.Parallel()
	o := &lockOptions{path: filepath.Join(t.TempDir(), "lock"), exit: true}
	if err := os.WriteFile(o.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.contended(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("stopped: %v", err)
	}
	go func() { ended <- o.contended(t.Context()) }()
	for {
		f, err := os.Open(o.path)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, errContended) {
				t.Errorf("%v, want %v", err, errContended)
			}
			return
		default:
		}
	}
}
