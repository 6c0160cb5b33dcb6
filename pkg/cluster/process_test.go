package cluster

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"bonsai/pkg/cluster/host"
)

// manifest is a directory of one add-on.
func manifest(text string) fs.FS { return fstest.MapFS{"a.yaml": {Data: []byte(text)}} }

// supervise keeps a shell script running and returns the supervisor and what stops it.
func supervise(t *testing.T, script string) (*supervisor, string, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := newSupervisor(ctx, slog.New(slog.DiscardHandler))
	log := filepath.Join(t.TempDir(), "logs", "p.log")
	keeping, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.keep(keeping, process{name: "p", argv: []string{"/bin/sh", "-c", script}, log: log}) })
	var once sync.Once
	end := func() { once.Do(func() { stop(); wg.Wait(); cancel() }) }
	t.Cleanup(end)
	return s, log, end
}

// waitStatus waits until the process's status satisfies the condition.
func waitStatus(t *testing.T, s *supervisor, holds func(ProcessStatus) bool) ProcessStatus {
	t.Helper()
	var last ProcessStatus
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		if all := s.statuses(); len(all) == 1 {
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
	s, log, _ := supervise(t, "echo hello; exit 3")
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
	s, _, _ := supervise(t, "exec sleep 100")
	first := waitStatus(t, s, func(p ProcessStatus) bool { return p.PID != 0 })
	if !s.owns(first.PID) {
		t.Error("a running child is not owned")
	}
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := waitStatus(t, s, func(p ProcessStatus) bool { return p.PID != 0 && p.PID != first.PID })
	if second.Restarts != 1 || second.LastExit != "signal: killed" || s.owns(first.PID) {
		t.Errorf("%+v", second)
	}
}

// TestKeepStops: SIGTERM first, and keep returns only when the process is gone.
func TestKeepStops(t *testing.T) {
	t.Parallel()
	s, log, end := supervise(t, `trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done`)
	status := waitStatus(t, s, func(p ProcessStatus) bool { return p.PID != 0 })
	// The shell must have set its trap: its first child proves it.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := host.Poll(ctx, 5*time.Millisecond, func() (bool, error) {
		children, err := os.ReadFile("/proc/" + strconv.Itoa(status.PID) + "/task/" + strconv.Itoa(status.PID) + "/children")
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
	if _, err := askControl(ctx, path); err == nil {
		t.Error("nobody is there, and yet there is an answer")
	}
	done := make(chan error, 1)
	go func() { done <- serveControl(ctx, path, func() Status { return Status{PID: 42} }, nil) }()
	if err := host.Poll(ctx, time.Millisecond, func() (bool, error) {
		s, err := askControl(ctx, path)
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

// TestCheckSockets: a data directory below which the kernel takes no socket is told of before anything starts, and one letter less is none.
func TestCheckSockets(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for length, fits := range map[int]bool{87: true, 88: false} {
		c := Default(filepath.Join(base, strings.Repeat("d", length-len(base)-1)), "")
		if err := os.MkdirAll(c.layout().run(), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", c.layout().socket("supervisor"))
		if (err == nil) != fits {
			t.Fatalf("%d: %v", length, err)
		}
		if err == nil {
			l.Close()
		}
		if err := c.checkSockets(); (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "a path of 108 characters") {
			t.Errorf("%d: %v", length, err)
		}
	}
	c := Default("/"+strings.Repeat("d", 60), "")
	c.Nodes[0].Hostname = strings.Repeat("h", 63)
	if err := c.checkSockets(); err == nil {
		t.Error("a long name of a node's was not counted")
	}
}
