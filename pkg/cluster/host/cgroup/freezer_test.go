package cgroup

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/cluster/host"
)

// TestFreezerFiles: what the kernel's files of either version say.
func TestFreezerFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		make          func(string) Freezer
		file, content string
		want          bool
	}{
		{FreezerV1, "freezer.state", "FROZEN\n", true},
		{FreezerV1, "freezer.state", "FREEZING\n", false},
		{FreezerV1, "freezer.state", "THAWED\n", false},
		{FreezerV2, "cgroup.events", "populated 1\nfrozen 1\n", true},
		{FreezerV2, "cgroup.events", "populated 1\nfrozen 0\n", false},
		{FreezerV2, "other", "frozen 1\n", false}, // no such group
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.make(dir).IsFrozen(); got != c.want || err != nil {
			t.Errorf("%s %q: %t, %v", c.file, c.content, got, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.events"), []byte("frozen 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := FreezerV2(dir).Set(t.Context(), true); err != nil {
		t.Error(err)
	}
	if wish, err := os.ReadFile(filepath.Join(dir, "cgroup.freeze")); err != nil || string(wish) != "1" {
		t.Errorf("%q, %v", wish, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := FreezerV2(dir).Set(over, false); err == nil {
		t.Error("what stays frozen was thawed")
	}
}

// TestFreeze: a frozen process ends at the signal that it was sent only when it is thawed (v1), and the group says
// what it is.
func TestFreeze(t *testing.T) {
	t.Parallel()
	group, of := filepath.Join(Root, "freezer"), FreezerV1
	if IsUnified() {
		group, of = Root, FreezerV2
	}
	group = filepath.Join(group, fmt.Sprintf("cluster-test-%d", os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("SKIPPED: cannot make a cgroup: %v", err)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		of(group).Set(context.Background(), false)
		sleeper.Process.Kill()
		sleeper.Wait()
		if err := host.Poll(context.Background(), time.Millisecond, func() (bool, error) {
			return syscall.Rmdir(group) == nil, nil
		}); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, sleeper.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	for _, frozen := range []bool{true, true, false, true} {
		if err := of(group).Set(t.Context(), frozen); err != nil {
			t.Fatal(err)
		}
		if is, err := of(group).IsFrozen(); err != nil || is != frozen {
			t.Errorf("frozen: %t, not %t, %v", is, frozen, err)
		}
	}
}
