package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// FileSystem is a file system of a volume's own; a nil one stands for the node's disk.
type FileSystem struct {
	// Type is the kernel's name for it, Options are those of mount.
	Type, Options string
}

// Tmpfs returns a file system in memory of so many bytes, 0 for half of the machine's memory.
func Tmpfs(size int64) *FileSystem {
	options := "mode=1777"
	if size > 0 {
		options += ",size=" + strconv.FormatInt(size, 10)
	}
	return &FileSystem{Type: "tmpfs", Options: options}
}

// Ready reports whether dir exists as MakeDir leaves it.
func Ready(dir string, on *FileSystem) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && (on == nil || IsMountPoint(dir))
}

// MakeDir makes a directory that is open to all users. It appears with its mode, or not at all: it is made under
// another name and renamed, because a kubelet that is killed before the chmod must not leave a volume that looks
// complete.
func MakeDir(dir string, on *FileSystem) error {
	if Ready(dir, on) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return fmt.Errorf("make the volume's parent: %w", err)
	}
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		next := filepath.Join(filepath.Dir(dir), ".new-"+filepath.Base(dir)) // no volume's name begins with a dot
		if err := os.Mkdir(next, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make the volume: %w", err)
		}
		if err := os.Chmod(next, 0o777); err != nil {
			return fmt.Errorf("open the volume to all users: %w", err)
		}
		if err := os.Rename(next, dir); err != nil {
			return fmt.Errorf("make the volume: %w", err)
		}
	}
	if on == nil {
		return nil
	}
	if err := on.mount(dir); err != nil {
		return fmt.Errorf("mount a %s (%s) at %s: %w", on.Type, on.Options, dir, err)
	}
	return nil
}

// mount keeps a tmpfs out of swap where the kernel can (from 6.4 on, and not in another user namespace), because its
// content may be secret.
func (f *FileSystem) mount(dir string) error {
	if f.Type == "tmpfs" {
		if err := unix.Mount(f.Type, dir, f.Type, 0, f.Options+",noswap"); !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return unix.Mount(f.Type, dir, f.Type, 0, f.Options)
}

// IsMountPoint compares the devices of a directory and its parent. That sees every tmpfs, but not bind mounts.
func IsMountPoint(dir string) bool {
	var a, b syscall.Stat_t
	return syscall.Lstat(dir, &a) == nil && syscall.Lstat(filepath.Dir(dir), &b) == nil && a.Dev != b.Dev
}
