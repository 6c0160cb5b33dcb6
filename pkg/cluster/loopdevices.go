package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A kubelet and storage drivers in pods have loop devices hold files of the node's: volumes that are block devices, disks in a file. Loop devices belong
// to the machine and outlive a node that was ended, and whoever made them; the space of a file that one holds is not free when the file is gone.

// inode names a file of the machine.
type inode struct{ device, number uint64 }

// freeLoopDevices frees the loop devices that hold files in the data directory.
func (c Config) freeLoopDevices() error {
	var info unix.Stat_t
	if err := unix.Stat(c.DataDir, &info); errors.Is(err, unix.ENOENT) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look at the data directory: %w", err)
	}
	held, err := loopDevices()
	if err != nil {
		return err
	}
	for file := range held {
		if file.device != info.Dev {
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
			for _, device := range held[inode{s.Dev, s.Ino}] {
				errs = append(errs, freeLoopDevice(device))
			}
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// loopDevices are the machine's loop devices that hold something, by what they hold.
func loopDevices() (map[inode][]string, error) {
	list, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list the loop devices: %w", err)
	}
	held := map[inode][]string{}
	for _, p := range list {
		device := filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(p))))
		info, err := loopStatus(device)
		if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) { // freed meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", device, err)
		}
		file := inode{info.Device, info.Inode}
		held[file] = append(held[file], device)
	}
	return held, nil
}

func loopStatus(device string) (*unix.LoopInfo64, error) {
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.IoctlLoopGetStatus64(int(f.Fd()))
}

// freeLoopDevice frees a loop device; one that somebody still has open is freed when that ends.
func freeLoopDevice(device string) error {
	f, err := os.Open(device)
	if err != nil {
		return fmt.Errorf("free %s: %w", device, err)
	}
	defer f.Close()
	if _, err := unix.IoctlRetInt(int(f.Fd()), unix.LOOP_CLR_FD); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("free %s: %w", device, err)
	}
	return nil
}
