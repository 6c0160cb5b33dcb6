package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"

	"bonsai/pkg/kubelet/filetree"
)

// RemoveTree unmounts everything below path, then removes it. It removes nothing while anything is still mounted there:
// removing through a bind mount would delete what the pod only borrowed. It ends early with ctx, and returns an error.
func RemoveTree(ctx context.Context, path string) error {
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
	if err := remove(ctx, path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// remove removes a file, or as much as possible of a directory and everything in it. Unlike [os.RemoveAll] it holds few
// directories open at once, however deep they are: a pod chooses the depth.
func remove(ctx context.Context, path string) error {
	root, err := filetree.Open(path)
	if err == nil {
		r := &remover{}
		if stopped := filetree.Walk(ctx, root, r); stopped != nil {
			return stopped
		}
		err = r.err
	}
	left := os.Remove(path)
	switch {
	case left == nil, errors.Is(left, fs.ErrNotExist):
		return nil
	case err == nil, errors.Is(err, unix.ENOTDIR):
		return left
	}
	return err
}

// remover removes what the walk visits.
type remover struct {
	err error // the first
}

// Entry implements filetree.Visitor.
func (r *remover) Entry(dir int, name string) bool {
	err := unix.Unlinkat(dir, name, 0)
	if errors.Is(err, unix.EISDIR) {
		return true
	}
	r.note(name, err)
	return false
}

// Leave implements filetree.Visitor.
func (r *remover) Leave(dir int, name string, err error) {
	left := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if left != nil && err != nil {
		left = err
	}
	r.note(name, left)
}

func (r *remover) note(name string, err error) {
	if err != nil && r.err == nil && !errors.Is(err, unix.ENOENT) {
		r.err = fmt.Errorf("%q in it: %w", name, err)
	}
}

// unmount unmounts the mount points in their order. A busy mount is detached: it disappears from the tree now, and from
// the kernel when its last user is gone.
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
