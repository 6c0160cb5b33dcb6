// Package loopdevice holds block devices and files open with the kernel's loop devices. Which loop device holds what is
// known to the kernel alone, so a kubelet that has just started finds it again, and whoever removes a cluster what is
// left of its own.
package loopdevice

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// tries bounds how often a free loop device is looked for: others may take the one that was found.
const tries = 16

// Attach has a loop device hold the file at path, unless one does already.
func Attach(path string) error {
	if held, err := Of(path); err != nil || held != "" {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil { // a device may be read-only
		if file, err = os.Open(path); err != nil {
			return fmt.Errorf("open what a loop device is to hold: %w", err)
		}
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("find a free loop device: %w", err)
	}
	defer control.Close()
	for range tries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return fmt.Errorf("find a free loop device: %w", err)
		}
		err = configure(fmt.Sprintf("/dev/loop%d", n), file)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("hold %s with loop device %d: %w", path, n, err)
		}
	}
	return fmt.Errorf("hold %s: others took each of %d free loop devices", path, tries)
}

func configure(device string, file *os.File) error {
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.IoctlLoopConfigure(int(f.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())})
}

// Detach frees the loop device that holds the file at path, if any does.
func Detach(path string) error {
	device, err := Of(path)
	if err != nil || device == "" {
		return err
	}
	if err := Free(device); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Free has a loop device hold nothing any more. One that somebody still has open is free when that ends.
func Free(device string) error {
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

// Of is the loop device that holds the file at path, "" if none does.
func Of(path string) (string, error) {
	list, err := backingFiles()
	if err != nil {
		return "", err
	}
	for _, p := range list {
		held, err := os.ReadFile(p)
		if err != nil { // freed meanwhile
			continue
		}
		if strings.TrimSuffix(string(held), "\n") == path {
			return deviceOf(p), nil
		}
	}
	return "", nil
}

// File is a file by its inode, for processes see it at different paths.
type File struct{ Device, Inode uint64 }

// Held are the machine's loop devices that hold something, by what they hold.
func Held() (map[File][]string, error) {
	list, err := backingFiles()
	if err != nil {
		return nil, err
	}
	held := map[File][]string{}
	for _, p := range list {
		device := deviceOf(p)
		info, err := status(device)
		if errors.Is(err, unix.ENXIO) || errors.Is(err, fs.ErrNotExist) { // freed meanwhile
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", device, err)
		}
		file := File{info.Device, info.Inode}
		held[file] = append(held[file], device)
	}
	return held, nil
}

func status(device string) (*unix.LoopInfo64, error) {
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.IoctlLoopGetStatus64(int(f.Fd()))
}

// backingFiles are the kernel's files that name what loop devices hold, /sys/block/loop3/loop/backing_file.
func backingFiles() ([]string, error) {
	list, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, fmt.Errorf("list the loop devices: %w", err)
	}
	return list, nil
}

// deviceOf is the loop device of such a file.
func deviceOf(backingFile string) string {
	return filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(backingFile))))
}
