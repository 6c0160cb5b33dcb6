package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/loopdevice"
)

// FreeLoopDevices frees the loop devices that hold files below dir.
//
// A kubelet, and storage drivers in pods, have loop devices hold files of the node: volumes that are block devices,
// disks in a file. Loop devices belong to the machine. They outlive the node and whoever made them, and while one
// holds a file, the file's space is not free even when the file is removed.
func FreeLoopDevices(dir string) error {
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); errors.Is(err, unix.ENOENT) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	held, err := loopdevice.Held()
	if err != nil {
		return err
	}
	for file := range held {
		if file.Device != info.Dev {
			delete(held, file)
		}
	}
	if len(held) == 0 { // as nearly always: a walk is not free
		return nil
	}
	var errs []error
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return IgnoreMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return IgnoreMissing(err)
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok {
			for _, device := range held[loopdevice.File{Device: s.Dev, Inode: s.Ino}] {
				errs = append(errs, loopdevice.Free(device))
			}
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}
