package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// MountedAt reports whether anything is mounted at dir itself: a file system or a bind mount.
func MountedAt(dir string) (bool, error) {
	points, err := mountsBeneath(dir)
	return slices.Contains(points, dir), err
}

// RemoveMount unmounts everything at and below dir, then removes dir itself, which must be empty then: anything that is
// still in it is somebody's data.
func RemoveMount(dir string) error {
	if err := unmountBeneath(dir); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the mount point: %w", err)
	}
	return nil
}
