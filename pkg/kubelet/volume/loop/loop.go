// Package loop holds block devices and files open with the kernel's loop devices. Which loop device holds what is known to the kernel alone, so a kubelet
// that has just started finds it again.
package loop

import (
	"errors"
	"fmt"
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
	f, err := os.Open(device)
	if err != nil {
		return fmt.Errorf("free the loop device of %s: %w", path, err)
	}
	defer f.Close()
	if _, err := unix.IoctlRetInt(int(f.Fd()), unix.LOOP_CLR_FD); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("free the loop device of %s: %w", path, err)
	}
	return nil
}

// Of is the loop device that holds the file at path, "" if none does.
func Of(path string) (string, error) {
	list, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", fmt.Errorf("list the loop devices: %w", err)
	}
	for _, p := range list {
		held, err := os.ReadFile(p)
		if err != nil { // freed meanwhile
			continue
		}
		if strings.TrimSuffix(string(held), "\n") == path {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(p)))), nil
		}
	}
	return "", nil
}
