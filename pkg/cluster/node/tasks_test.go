package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"bonsai/pkg/cluster/host"
)

// TestClearUnfinishedTasks: before containerd starts again, a shim whose task was never made or has ended is killed,
// and the directory of a task that no shim began to make is removed. A shim with a container, any other program, and
// the directory of a task that was begun, in which something may be mounted, are left alone.
func TestClearUnfinishedTasks(t *testing.T) {
	t.Parallel()
	proc, tasks := t.TempDir(), t.TempDir()
	type program struct {
		cmd   *exec.Cmd
		ended chan error
	}
	start := func(name, id string) *program {
		cmd := exec.Command("sleep", "100")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(proc, strconv.Itoa(cmd.Process.Pid))
		line := fmt.Sprintf("/usr/bin/%s\x00-namespace\x00k8s.io\x00-id\x00%s\x00-address\x00/run/containerd/containerd.sock\x00", name, id)
		if err := host.WriteFile(filepath.Join(dir, "cmdline"), []byte(line)); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (a) b) S 1 %d", cmd.Process.Pid, cmd.Process.Pid)
		if err := host.WriteFile(filepath.Join(dir, "stat"), []byte(stat)); err != nil {
			t.Fatal(err)
		}
		p := &program{cmd, make(chan error, 1)}
		go func() {
			p.ended <- cmd.Wait()
			os.RemoveAll(dir) // as /proc does
		}()
		t.Cleanup(func() { cmd.Process.Kill() })
		return p
	}
	for _, file := range []string{"running/runtime", "running/init.pid", "ended/runtime", "ended/init.pid",
		"begun/runtime", "begun/config.json", "unfinished/config.json", "without-shim/config.json"} {
		if err := host.WriteFile(filepath.Join(tasks, file), []byte("1")); err != nil {
			t.Fatal(err)
		}
	}
	unfinished := []*program{start("containerd-shim-runc-v2", "unfinished"), start("containerd-shim-runc-v2", "begun"),
		start("containerd-shim-runc-v2", "ended")}
	running := start("containerd-shim-runc-v2", "running")
	others := []*program{running, start("sleep", "unfinished")}
	stat := fmt.Sprintf("1 (pause) S %d 1", running.cmd.Process.Pid)
	if err := host.WriteFile(filepath.Join(proc, "1", "stat"), []byte(stat)); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(filepath.Join(proc, "1", "cmdline"), []byte("/pause\x00")); err != nil {
		t.Fatal(err)
	}
	clearUnfinishedTasks(t.Context(), proc, tasks, slog.New(slog.DiscardHandler))
	for i, shim := range unfinished {
		select {
		case err := <-shim.ended:
			if err == nil || err.Error() != "signal: killed" {
				t.Errorf("unfinished shim %d: %v", i, err)
			}
		default: // it must have ended before directories are looked at
			t.Errorf("unfinished shim %d still runs", i)
		}
	}
	for i, other := range others {
		other.cmd.Process.Signal(syscall.SIGTERM)
		if err := <-other.ended; err == nil || err.Error() != "signal: terminated" {
			t.Errorf("other program %d was ended: %v", i, err)
		}
	}
	entries, err := os.ReadDir(tasks)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"begun", "ended", "running"}; !slices.Equal(left, want) {
		t.Errorf("left: %v, want %v", left, want)
	}
}

// TestClearUnfinishedTasksSparesReusedNumbers: a program that has the number of a shim that has ended lives on.
func TestClearUnfinishedTasksSparesReusedNumbers(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "100")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	proc, tasks := t.TempDir(), t.TempDir()
	write := func(line string) error {
		return host.WriteFile(filepath.Join(proc, strconv.Itoa(stranger.Process.Pid), "cmdline"), []byte(line))
	}
	if err := write("containerd-shim-runc-v2\x00-id\x00unfinished\x00"); err != nil {
		t.Fatal(err)
	}
	// The shim is announced right before it is killed. At this moment it ends, and the stranger gets its number.
	log := slog.New(onRecord{slog.DiscardHandler, func() error { return write("sleep\x00100\x00") }})
	clearUnfinishedTasks(t.Context(), proc, tasks, log)
	if err := errors.Join(stranger.Process.Signal(syscall.SIGTERM), stranger.Wait()); err == nil ||
		err.Error() != "signal: terminated" {
		t.Errorf("the program that is no shim ended with %v", err)
	}
}

// onRecord is a log that does something for each record.
type onRecord struct {
	slog.Handler
	do func() error
}

func (onRecord) Enabled(context.Context, slog.Level) bool    { return true }
func (h onRecord) Handle(context.Context, slog.Record) error { return h.do() }
