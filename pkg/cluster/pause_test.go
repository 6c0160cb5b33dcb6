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

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFreezerFiles: what the kernel's files of either version say.
func TestFreezerFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		make          func(string) freezer
		file, content string
		want          bool
	}{
		{freezerV1, "freezer.state", "FROZEN\n", true},
		{freezerV1, "freezer.state", "FREEZING\n", false},
		{freezerV1, "freezer.state", "THAWED\n", false},
		{freezerV2, "cgroup.events", "populated 1\nfrozen 1\n", true},
		{freezerV2, "cgroup.events", "populated 1\nfrozen 0\n", false},
		{freezerV2, "other", "frozen 1\n", false}, // no such group
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := c.make(dir).isFrozen(); got != c.want || err != nil {
			t.Errorf("%s %q: %t, %v", c.file, c.content, got, err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cgroup.events"), []byte("frozen 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := freezerV2(dir).set(t.Context(), true); err != nil {
		t.Error(err)
	}
	if wish, err := os.ReadFile(filepath.Join(dir, "cgroup.freeze")); err != nil || string(wish) != "1" {
		t.Errorf("%q, %v", wish, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := freezerV2(dir).set(over, false); err == nil {
		t.Error("what stays frozen was thawed")
	}
}

// TestFreeze: a frozen process ends at the signal that it was sent only when it is thawed (v1), and the group says what it is.
func TestFreeze(t *testing.T) {
	t.Parallel()
	group, of := filepath.Join(cgroupRoot, "freezer"), freezerV1
	if unified() {
		group, of = cgroupRoot, freezerV2
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
		of(group).set(context.Background(), false)
		sleeper.Process.Kill()
		sleeper.Wait()
		if err := poll(context.Background(), time.Millisecond, func() (bool, error) { return syscall.Rmdir(group) == nil, nil }); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, sleeper.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	for _, frozen := range []bool{true, true, false, true} {
		if err := of(group).set(t.Context(), frozen); err != nil {
			t.Fatal(err)
		}
		if is, err := of(group).isFrozen(); err != nil || is != frozen {
			t.Errorf("frozen: %t, not %t, %v", is, frozen, err)
		}
	}
}

// TestResumeThatWasKilled: a controller manager that a killed resume held goes on with the next one, though the cluster is not paused any more.
func TestResumeThatWasKilled(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.BinDir = t.TempDir()
	if err := errors.Join(c.save(), os.MkdirAll(c.layout().run(), 0o700)); err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(cgroupRoot, "freezer", c.mark())
	if unified() {
		group = filepath.Join(cgroupRoot, c.mark())
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("SKIPPED: cannot make a cgroup: %v", err)
	}
	manager := exec.Command("sleep", "1000")
	manager.Args[0] = c.bin("kube-controller-manager")
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		manager.Process.Kill()
		manager.Wait()
		if err := poll(context.Background(), time.Millisecond, func() (bool, error) { return syscall.Rmdir(group) == nil, nil }); err != nil {
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
		if err := poll(ctx, time.Millisecond, func() (bool, error) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", manager.Process.Pid))
			return strings.Contains(string(stat), ") T ") == want, err
		}); err != nil {
			t.Fatalf("held is not %t: %v", want, err)
		}
	}
	if err := c.signalManagers(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	isHeld(true)
	go serveControl(t.Context(), c.layout().socket("supervisor"), func() Status { return Status{} }, nil)
	if err := poll(t.Context(), time.Millisecond, func() (bool, error) { return running(t.Context(), c), nil }); err != nil {
		t.Fatal(err)
	}
	if err := Resume(t.Context(), c.DataDir); err != nil {
		t.Fatal(err)
	}
	isHeld(false)
}

// TestAllFresh: the controller manager goes on when no node's lease is old; leases of what is no node do not matter.
func TestAllFresh(t *testing.T) {
	t.Parallel()
	c, now := testConfig(t), time.Now()
	lease := func(name string, age time.Duration) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(now.Add(-age))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	for name, leases := range map[string][]*coordinationv1.Lease{
		"true":                 {lease("n1", time.Second), lease("n2", freshLease), lease("n7", time.Hour)},
		"true, none":           nil,
		"false":                {lease("n1", time.Second), lease("n2", freshLease+time.Second)},
		"false, never renewed": {{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}},
	} {
		if got := c.allFresh(leases, now); got != strings.HasPrefix(name, "true") {
			t.Errorf("%s: %t", name, got)
		}
	}
}
