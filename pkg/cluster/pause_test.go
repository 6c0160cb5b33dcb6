package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
)

// TestResumeThatWasKilled: a controller manager that a killed resume held goes on with the next one, though the cluster
// is not paused any more.
func TestResumeThatWasKilled(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.BinDir = t.TempDir()
	if err := errors.Join(datadir.Save(c), os.MkdirAll(c.Layout().Run(), 0o700)); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(cgroup.Root, "freezer", c.Mark())
	if cgroup.IsUnified() {
		group = filepath.Join(cgroup.Root, c.Mark())
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("SKIPPED: cannot make a cgroup: %v", err)
	}
	manager := exec.Command("sleep", "1000")
	manager.Args[0] = c.Bin("kube-controller-manager")
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		manager.Process.Kill()
		manager.Wait()
		if err := host.Poll(context.Background(), time.Millisecond, func() (bool, error) {
			return syscall.Rmdir(group) == nil, nil
		}); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, manager.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	isHeld := func(want bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := host.Poll(ctx, time.Millisecond, func() (bool, error) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", manager.Process.Pid))
			return strings.Contains(string(stat), ") T ") == want, err
		}); err != nil {
			t.Fatalf("held is not %t: %v", want, err)
		}
	}
	if err := signalManagers(c, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	isHeld(true)
	go supervise.Serve(t.Context(), c.Layout().Socket("supervisor"), func() supervise.Status {
		return supervise.Status{}
	}, nil)
	if err := host.Poll(t.Context(), time.Millisecond, func() (bool, error) {
		return running(t.Context(), c), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := Resume(t.Context(), c.DataDir); err != nil {
		t.Fatal(err)
	}
	isHeld(false)
}
