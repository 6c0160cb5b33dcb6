package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/pidfd/pidfdtest"
)

// realUnified returns cgroups of v2 in a tree of the test's own, and skips the test where there is no v2 with a
// controller that groups can hand down: without one the kernel lets any group have processes.
func realUnified(t *testing.T) Groups {
	t.Helper()
	for _, root := range []string{Root, filepath.Join(Root, "unified")} {
		controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
		if err != nil || strings.TrimSpace(string(controllers)) == "" || Delegate(root) != nil {
			continue
		}
		g := Groups{Trees: []string{filepath.Join(root, fmt.Sprintf("bonsai-%08x", time.Now().UnixNano()&0xffffffff))},
			Unified: true}
		if err := g.Make(ControlPlane); err != nil {
			continue
		}
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			if err := errors.Join(g.Kill(ctx, ""), g.Remove(ctx, "")); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	t.Skip("SKIPPED: cgroup v2 with a controller, and root, are needed")
	return Groups{}
}

// startIn starts a process in a group, as a node's init and what it starts are in one.
func startIn(t *testing.T, group string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go cmd.Wait()
	t.Cleanup(func() { cmd.Process.Kill() })
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// TestRenewCgroup: a node's init can be started again on cgroup v2, where the group that it had has handed its
// controllers down and holds groups of pods, and perhaps a process that outlived it.
func TestRenewCgroup(t *testing.T) {
	t.Parallel()
	g := realUnified(t)
	const patience = 10 * time.Second
	for range 3 {
		if err := g.Renew(t.Context(), "n1", patience); err != nil {
			t.Fatal(err)
		}
		// What a node does with its group: init enters it, goes on into a leaf, and hands the controllers down to the
		// pods.
		group := filepath.Join(g.Trees[0], "n1")
		cmd := startIn(t, group)
		for _, child := range []string{"node", "kubepods/pod1"} {
			if err := os.MkdirAll(filepath.Join(group, child), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(group, "node", "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)),
			0); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(g.HandDown(), Delegate(group), Delegate(filepath.Join(group, "kubepods"))); err != nil {
			t.Fatal(err)
		}
		startIn(t, filepath.Join(group, "kubepods/pod1"))
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())),
			0); !errors.Is(err, syscall.EBUSY) {
			t.Fatalf("the kernel lets a process into a group that handed its controllers down: %v", err)
		}
		if processes, err := g.Processes("n1"); err != nil || len(processes) != 2 {
			t.Fatalf("%v, %v", processes, err)
		}
	}
}

// TestHugePagesReachTheTree: systemd hands huge pages down to no unit, so the cluster does, as far as the groups above
// have them.
func TestHugePagesReachTheTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scope := filepath.Join(dir, "system.slice", "b.scope")
	if err := os.MkdirAll(scope, 0o755); err != nil {
		t.Fatal(err)
	}
	for group, controllers := range map[string]string{dir: "cpu hugetlb", filepath.Dir(scope): "cpu hugetlb misc",
		scope: "cpu"} {
		for file, text := range map[string]string{"cgroup.controllers": controllers, "cgroup.subtree_control": "cpu"} {
			if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := handHugePagesDown(scope); err != nil {
		t.Fatal(err)
	}
	for group, want := range map[string]string{dir: "+hugetlb", filepath.Dir(scope): "+hugetlb", scope: "cpu"} {
		if got, err := os.ReadFile(filepath.Join(group, "cgroup.subtree_control")); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %s", group, got, err, want)
		}
	}
}

// TestKillSparesReusedNumbers: a process that has the number of one that was in the group lives on.
func TestKillSparesReusedNumbers(t *testing.T) {
	t.Parallel()
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	pidfdtest.ListOnce(t, filepath.Join(tree, "cgroup.procs"), stranger.Process.Pid)
	ctx, cancel := context.WithTimeout(t.Context(), KillPatience)
	defer cancel()
	if err := (Groups{Trees: []string{tree}}).Kill(ctx, ""); err != nil {
		t.Error(err)
	}
	if err := errors.Join(stranger.Process.Signal(syscall.SIGTERM), stranger.Wait()); err == nil ||
		err.Error() != "signal: terminated" {
		t.Errorf("the process outside the group ended with %v", err)
	}
}
