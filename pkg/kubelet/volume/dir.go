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

// Ready tells whether dir exists as MakeDir leaves it.
func Ready(dir string, memory bool) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && (!memory || IsMountPoint(dir))
}

// MakeDir makes a directory of mode 0777, a tmpfs of the given size (bytes, 0: the kernel's default) if in memory. It appears with its
// mode, or not at all.
func MakeDir(dir string, memory bool, size int64) error {
	if Ready(dir, memory) {
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
	if memory {
		options := "mode=0777"
		if size > 0 {
			options += ",size=" + strconv.FormatInt(size, 10)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			return fmt.Errorf("mount a tmpfs of %d bytes at %s: %w", size, dir, err)
		}
	}
	return nil
}

// IsMountPoint compares the devices of a directory and its parent; that sees every tmpfs, though not bind mounts.
func IsMountPoint(dir string) bool {
	var a, b syscall.Stat_t
	return syscall.Lstat(dir, &a) == nil && syscall.Lstat(filepath.Dir(dir), &b) == nil && a.Dev != b.Dev
}
