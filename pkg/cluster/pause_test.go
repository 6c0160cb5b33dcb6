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
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
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
	tree := makeTree(t, c.Mark(), cgroup.ControlPlane)
	manager := startIn(t, filepath.Join(tree, cgroup.ControlPlane), c.Bin("kube-controller-manager"))
	if err := signalManagers(c, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitHeld(t, manager, true)
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
	awaitHeld(t, manager, false)
}

// TestPauseWaits: a pause that finds the cluster frozen by another command waits until that command has thawed it.
func TestPauseWaits(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	makeTree(t, c.Mark())
	freezer := cgroup.FreezerOf(c.Mark())
	saves, err := machine.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := freezer.Set(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	ctx := &asked{Context: t.Context(), waits: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- Pause(ctx, c.DataDir) }()
	select {
	case <-ctx.waits:
	case err := <-done:
		t.Errorf("paused by another command: %v", err)
		done <- err
	}
	if err := errors.Join(freezer.Set(t.Context(), false), saves.Close()); err != nil {
		t.Fatal(err)
	}
	// No supervisor runs in this test, so a pause that looks now says so.
	if err := <-done; err == nil || !strings.Contains(err.Error(), "is not running") {
		t.Errorf("paused afterwards: %v", err)
	}
}

// TestNoNodeIsTheControlPlane: the group of the control plane is no group of a node, whatever the node of a machine
// that joins is called. The start of a node kills what is in the node's group.
func TestNoNodeIsTheControlPlane(t *testing.T) {
	t.Parallel()
	if plan.CheckNodeName(cgroup.ControlPlane) == nil {
		t.Errorf("a node may be called %s", cgroup.ControlPlane)
	}
}

// TestPodsAreNoManagers: a resume holds the controller manager, and no process of a pod, whatever a pod calls its
// processes.
func TestPodsAreNoManagers(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.BinDir = t.TempDir()
	tree := makeTree(t, c.Mark(), cgroup.ControlPlane, "n1")
	manager := startIn(t, filepath.Join(tree, cgroup.ControlPlane), c.Bin("kube-controller-manager"))
	other := startIn(t, filepath.Join(tree, cgroup.ControlPlane), c.Bin("kube-scheduler"))
	pod := startIn(t, filepath.Join(tree, "n1"), c.Bin("kube-controller-manager"))
	if err := signalManagers(c, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitHeld(t, manager, true)
	// Signals to other processes would have been sent before or right after. SIGSTOP needs no help of the process, so
	// what is sent shows at once.
	for name, pid := range map[string]int{"the scheduler": other, "the pod": pod} {
		if isHeld(t, pid) {
			t.Errorf("%s is held", name)
		}
	}
}

// makeTree makes the groups of a cluster with the mark in one hierarchy, and returns the tree's root.
func makeTree(t *testing.T, mark string, groups ...string) string {
	t.Helper()
	tree := filepath.Join(cgroup.Root, "freezer", mark)
	if cgroup.IsUnified() {
		tree = filepath.Join(cgroup.Root, mark)
	}
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Skipf("SKIPPED: cannot make a cgroup: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cgroup.KillPatience)
		defer cancel()
		if err := (cgroup.Groups{Trees: []string{tree}}).Remove(ctx, ""); err != nil {
			t.Error(err)
		}
	})
	for _, group := range groups {
		if err := os.Mkdir(filepath.Join(tree, group), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// startIn starts a process whose first argument is argv0, in a group, and returns its pid. It lives as long as the
// test.
func startIn(t *testing.T, group, argv0 string) int {
	t.Helper()
	process := exec.Command("sleep", "1000")
	process.Args[0] = argv0
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, process.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	return process.Process.Pid
}

// isHeld reports whether a process is stopped by a signal.
func isHeld(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(stat), ") T ")
}

// awaitHeld waits until a process is stopped by a signal, or goes on.
func awaitHeld(t *testing.T, pid int, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := host.Poll(ctx, time.Millisecond, func() (bool, error) {
		return isHeld(t, pid) == want, nil
	}); err != nil {
		t.Fatalf("held is not %t: %v", want, err)
	}
}
