package volume_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"bonsai/pkg/kubelet/volume"
)

// TestRemoveADeepTree: a tree may be deeper than the kubelet may have files open, and longer than a path may be.
func TestRemoveADeepTree(t *testing.T) { // not parallel: it lowers the limit of open files
	const levels, free = 5000, 1000
	dir := filepath.Join(t.TempDir(), "v")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(dir, unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range levels {
		file, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err := errors.Join(err, unix.Close(file), unix.Symlinkat("/", at, "link"), unix.Mkdirat(at, "d", 0o700),
			unix.Mkdirat(at, "e", 0o700)); err != nil {
			t.Fatal(err)
		}
		below, err := unix.Openat(at, []string{"d", "e"}[i%2], unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err := errors.Join(err, unix.Close(at)); err != nil {
			t.Fatal(err)
		}
		at = below
	}
	if err := unix.Close(at); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = free
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	err = volume.RemoveTree(t.Context(), dir)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still there:", err)
	}
}

// TestRemoveTree: files and links go like directories; a link's target stays.
func TestRemoveTree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, target := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Mkdir(target, 0o700),
		os.WriteFile(filepath.Join(target, "f"), nil, 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link, filepath.Join(dir, "absent")} {
		if err := volume.RemoveTree(t.Context(), path); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Error(path, "is still there:", err)
		}
	}
	if _, err := os.Stat(filepath.Join(target, "f")); err != nil {
		t.Error("what the link pointed to:", err)
	}
}
