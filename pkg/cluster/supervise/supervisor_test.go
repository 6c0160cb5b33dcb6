package supervise

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/cluster/host"
)

// supervise keeps a shell script running and returns the supervisor and what stops it.
func keepScript(t *testing.T, script string) (*Supervisor, string, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := New(ctx, slog.New(slog.DiscardHandler))
	log := filepath.Join(t.TempDir(), "logs", "p.log")
	var wg sync.WaitGroup
	wg.Go(func() { s.Keep(ctx, Process{Name: "p", Argv: []string{"/bin/sh", "-c", script}, Log: log}) })
	var once sync.Once
	end := func() { once.Do(func() { cancel(); wg.Wait() }) }
	t.Cleanup(end)
	return s, log, end
}

// waitStatus waits until the process's status satisfies the condition.
func waitStatus(t *testing.T, s *Supervisor, holds func(ProcessStatus) bool) ProcessStatus {
	t.Helper()
	var last ProcessStatus
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		if all := s.Statuses(); len(all) == 1 {
			last = all[0]
			return holds(last), nil
		}
		return false, nil
	})
	if err != nil {
		t.Fatalf("%v; the status was %+v", err, last)
	}
	return last
}

func TestKeepRestarts(t *testing.T) {
	t.Parallel()
	s, log, _ := keepScript(t, "echo hello; exit 3")
	status := waitStatus(t, s, func(p ProcessStatus) bool { return p.Restarts >= 2 })
	if status.LastExit != "exit status 3" {
		t.Errorf("last exit %q", status.LastExit)
	}
	if data, err := os.ReadFile(log); err != nil || strings.Count(string(data), "hello") < 2 {
		t.Errorf("log %q, %v", data, err)
	}
}

func TestKeepStartsAKilledProcessAnew(t *testing.T) {
	t.Parallel()
	s, _, _ := keepScript(t, "exec sleep 100")
	first := waitStatus(t, s, func(p ProcessStatus) bool { return p.PID != 0 })
	if !s.Owns(first.PID) {
		t.Error("a running child is not owned")
	}
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := waitStatus(t, s, func(p ProcessStatus) bool { return p.PID != 0 && p.PID != first.PID })
	if second.Restarts != 1 || second.LastExit != "signal: killed" || s.Owns(first.PID) {
		t.Errorf("%+v", second)
	}
}

// TestKeepStops: SIGTERM first, also where the supervisor's own context ends at the same moment, and Keep returns only
// when the process is gone.
func TestKeepStops(t *testing.T) {
	t.Parallel()
	s, log, end := keepScript(t, `trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done`)
	status := waitStatus(t, s, func(p ProcessStatus) bool { return p.PID != 0 })
	// The shell must have set its trap: its first child proves it.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		children, err := os.ReadFile("/proc/" + strconv.Itoa(status.PID) + "/task/" + strconv.Itoa(status.PID) +
			"/children")
		return len(children) > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	end()
	if err := syscall.Kill(status.PID, 0); err != syscall.ESRCH {
		t.Errorf("the process is still there: %v", err)
	}
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), "bye") {
		t.Errorf("log %q, %v", data, err)
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := Ask(ctx, path); err == nil {
		t.Error("nobody is there, and yet there is an answer")
	}
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, path, func() Status { return Status{PID: 42} }, nil) }()
	if err := host.Poll(ctx, time.Millisecond, func() (bool, error) {
		s, err := Ask(ctx, path)
		return err == nil && s.PID == 42, nil
	}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
