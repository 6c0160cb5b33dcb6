package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/loopdevice"
)

// A kubelet and storage drivers in pods have loop devices hold files of the node's: volumes that are block devices, disks in a file. Loop devices belong
// to the machine and outlive a node that was ended, and whoever made them; the space of a file that one holds is not free when the file is gone.

// freeLoopDevices frees the loop devices that hold files in the data directory.
func (c Config) freeLoopDevices() error {
	var info unix.Stat_t
	if err := unix.Stat(c.DataDir, &info); errors.Is(err, unix.ENOENT) {
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
	err = filepath.WalkDir(c.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreMissing(err)
		}
		info, err := d.Info()
		if err != nil {
			return ignoreMissing(err)
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
