package cluster

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestUnfinishedShims: a shim without a task is killed before containerd starts again; one with a task, and any other program,
// is left alone.
func TestUnfinishedShims(t *testing.T) {
	t.Parallel()
	proc, tasks := t.TempDir(), t.TempDir()
	start := func(name, id string) *exec.Cmd {
		cmd := exec.Command("sleep", "100")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		dir := filepath.Join(proc, strconv.Itoa(cmd.Process.Pid))
		line := fmt.Sprintf("/usr/bin/%s\x00-namespace\x00k8s.io\x00-id\x00%s\x00-address\x00/run/containerd/containerd.sock\x00", name, id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cmdline"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	unfinished, finished, other := start("containerd-shim-runc-v2", "unfinished"), start("containerd-shim-runc-v2", "finished"), start("sleep", "unfinished")
	if err := writeFile(filepath.Join(tasks, "finished", "init.pid"), []byte("1")); err != nil {
		t.Fatal(err)
	}
	endUnfinishedShims(proc, tasks, slog.New(slog.DiscardHandler))
	if err := unfinished.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the unfinished shim: %v", err)
	}
	for _, cmd := range []*exec.Cmd{finished, other} {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid)); err != nil || string(state) != "sleep\n" {
			t.Errorf("%v was ended: %s, %v", cmd, state, err)
		}
		if data, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)); err != nil || len(data) == 0 { // a zombie has none
			t.Errorf("%v was ended: %v", cmd, err)
		}
	}
}
