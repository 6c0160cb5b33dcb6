package node

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// TestEnterRoot: a node's root has the host's programs, to be read only, and nothing else of the host's; what is
// written there stays.
func TestEnterRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: a root needs root")
	}
	dir := t.TempDir()
	secret, data := filepath.Join(dir, "secret"), filepath.Join(dir, "data")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n := &Config{Name: "n7", DataDir: data, Mark: "bonsai-00000001",
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.77.0.17/24")}}
	hostID, err := os.ReadFile("/etc/machine-id")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for life := range 2 {
		done := make(chan struct{})
		go func() { // the thread is not unlocked: it ends with this goroutine, and its namespace with it
			defer close(done)
			runtime.LockOSThread()
			if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
				t.Errorf("no mount namespace: %v", err)
				return
			}
			if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), n.enterRoot()); err != nil {
				t.Error(err)
				return
			}
			if _, err := os.Stat(secret); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the host's file: %v", err)
			}
			if err := os.WriteFile("/usr/written", nil, 0o600); !errors.Is(err, unix.EROFS) {
				t.Errorf("write where the host's programs are: %v", err)
			}
			if _, err := os.Stat("/usr/bin/env"); err != nil {
				t.Error(err)
			}
			for path, want := range map[string]string{"/etc/hostname": "n7\n", "/etc/hosts": "10.77.0.17\tn7"} {
				if got, err := os.ReadFile(path); err != nil || !strings.Contains(string(got), want) {
					t.Errorf("%s: %q, %v", path, got, err)
				}
			}
			if id, err := os.ReadFile("/etc/machine-id"); err != nil || len(id) != 33 || string(id) == string(hostID) {
				t.Errorf("machine-id: %q, %v", id, err)
			}
			if to, err := os.Readlink("/var/run"); err != nil || to != "/run" {
				t.Errorf("/var/run: %s, %v", to, err)
			}
			if _, err := os.Stat("/etc/shadow"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("/etc/shadow: %v", err)
			}
			if _, err := os.Stat("/srv/kept"); (err == nil) != (life == 1) {
				t.Errorf("what an earlier life wrote: %v", err)
			}
			if err := os.WriteFile("/srv/kept", nil, 0o600); err != nil {
				t.Error(err)
			}
		}()
		<-done
	}
	if _, err := os.Stat(filepath.Join(plan.Layout(data).Node("n7", "root"), "srv", "kept")); err != nil {
		t.Error(err)
	}
	if mounts, err := host.MountsBelow(dir); err != nil || len(mounts) > 0 {
		t.Errorf("mounts are left: %v, %v", mounts, err)
	}
}
