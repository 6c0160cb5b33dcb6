package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"bonsai/pkg/loopdevice"
)

// MapDevice gives a pod the device at path. It is bound below the volume's notes and held open there by a loop device,
// so that its number is not given to another device while the pod has it. The link at the volume's place, by which the
// runtime finds it, is made last. Mapping again is fine.
func MapDevice(at Place, path string) error {
	held := heldDevice(at)
	for _, dir := range []string{filepath.Dir(held), filepath.Dir(at.Dir)} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("make the volume's directory: %w", err)
		}
	}
	mounted, err := MountedAt(held)
	if err != nil {
		return err
	}
	if !mounted {
		if err := os.WriteFile(held, nil, 0o600); err != nil {
			return fmt.Errorf("make where the device is bound: %w", err)
		}
		if err := unix.Mount(path, held, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind the device %s: %w", path, err)
		}
	}
	if err := loopdevice.Attach(held); err != nil {
		return err
	}
	if to, err := os.Readlink(at.Dir); err == nil && to == path {
		return nil
	}
	if err := os.Remove(at.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove an older link to a device: %w", err)
	}
	if err := os.Symlink(path, at.Dir); err != nil {
		return fmt.Errorf("link to the device: %w", err)
	}
	return nil
}

// UnmapDevice undoes MapDevice, finished or not.
func UnmapDevice(at Place) error {
	if err := os.Remove(at.Dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the link to the device: %w", err)
	}
	held := heldDevice(at)
	if err := loopdevice.Detach(held); err != nil {
		return err
	}
	if err := RemoveMount(held); err != nil {
		return err
	}
	// The directory stays if the source has notes of its own in it.
	if err := os.Remove(at.Notes); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTEMPTY) {
		return fmt.Errorf("remove the volume's notes: %w", err)
	}
	return nil
}

// DeviceMapped reports whether a device is mapped. After a restart of the machine the link still exists, but the mount
// does not.
func DeviceMapped(at Place) (bool, error) {
	if _, err := os.Readlink(at.Dir); err != nil {
		return false, nil
	}
	return MountedAt(heldDevice(at))
}

// heldDevice returns where a device is bound.
func heldDevice(at Place) string { return filepath.Join(at.Notes, "dev") }

// IsBlockDevice reports whether path is one, or leads to one.
func IsBlockDevice(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice, nil
}
