package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"bonsai/pkg/pidfd/pidfdtest"
)

// TestKillEach: where the kernel cannot kill a cgroup at once, each process in it and below it is killed. A process
// that has the number of one that was in it lives on, and so does the kubelet.
func TestKillEach(t *testing.T) {
	t.Parallel()
	var started []*exec.Cmd
	for range 3 {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		started = append(started, cmd)
	}
	stranger, inside, below := started[0], started[1], started[2]
	dir := t.TempDir()
	for path, members := range map[string][]int{"": {os.Getpid(), inside.Process.Pid}, "below": {below.Process.Pid}} {
		var text string
		for _, pid := range members {
			text += strconv.Itoa(pid) + "\n"
		}
		group := filepath.Join(dir, path)
		if err := errors.Join(os.MkdirAll(group, 0o755),
			os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	reused := filepath.Join(dir, "reused")
	if err := os.Mkdir(reused, 0o755); err != nil {
		t.Fatal(err)
	}
	pidfdtest.ListOnce(t, filepath.Join(reused, "cgroup.procs"), stranger.Process.Pid)
	if err := killAll(dir); err != nil {
		t.Error(err)
	}
	for _, cmd := range []*exec.Cmd{inside, below} {
		if err := cmd.Wait(); err == nil || err.Error() != "signal: killed" {
			t.Errorf("a process of the cgroup ended with %v", err)
		}
	}
	if err := errors.Join(stranger.Process.Signal(syscall.SIGTERM), stranger.Wait()); err == nil ||
		err.Error() != "signal: terminated" {
		t.Errorf("the process outside the cgroup ended with %v", err)
	}
}
