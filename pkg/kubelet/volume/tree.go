package volume

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
)

// RemoveTree unmounts everything beneath path, then removes it. It removes nothing while anything is still mounted there:
// removing through a bind mount would delete what the pod only borrowed.
func RemoveTree(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	points, err := mountsBeneath(path)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		if err := unmount(points); err != nil {
			return err
		}
		if points, err = mountsBeneath(path); err != nil {
			return err
		}
	}
	if len(points) > 0 {
		return fmt.Errorf("%s is still mounted: not removing %s", points[0], path)
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// unmount unmounts the mount points in their order. A mount that is busy is detached.
func unmount(points []string) error {
	for _, p := range points {
		err := unix.Unmount(p, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			err = unix.Unmount(p, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("unmount %s: %w", p, err)
		}
	}
	return nil
}

// unmountBeneath unmounts path and all mounts beneath it, the innermost first.
func unmountBeneath(path string) error {
	points, err := mountsBeneath(path)
	if err != nil {
		return err
	}
	return unmount(points)
}

// mountsBeneath lists the mount points at or beneath path, the last mounted first.
func mountsBeneath(path string) ([]string, error) {
	infos, err := mount.ParseMountInfo("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read the mounts: %w", err)
	}
	var points []string
	for _, i := range infos {
		if i.MountPoint == path || strings.HasPrefix(i.MountPoint, path+"/") {
			points = append(points, i.MountPoint)
		}
	}
	slices.Reverse(points)
	return points, nil
}
