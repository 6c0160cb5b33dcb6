package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// UnmountBelow detaches everything that is mounted below dir. Otherwise the removal of dir would delete the files of
// others.
func UnmountBelow(dir string) error {
	mounts, err := MountsBelow(dir)
	if err != nil {
		return err
	}
	var errs []error
	for i := len(mounts) - 1; i >= 0; i-- { // a later one may be inside an earlier one
		// EINVAL: it went together with another one.
		if err := unix.Unmount(mounts[i], unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			errs = append(errs, fmt.Errorf("unmount %s: %w", mounts[i], err))
		}
	}
	return errors.Join(errs...)
}

// MountsBelow lists the mount points below dir, in the order in which they were mounted. dir itself is not one of
// them.
func MountsBelow(dir string) ([]string, error) {
	points, err := mountPoints()
	if err != nil {
		return nil, err
	}
	var below []string
	for _, point := range points {
		if strings.HasPrefix(point, dir+"/") {
			below = append(below, point)
		}
	}
	return below, nil
}

// IsMountPoint reports whether something is mounted at dir itself.
func IsMountPoint(dir string) bool {
	points, err := mountPoints()
	if err != nil {
		return false
	}
	for _, point := range points {
		if point == dir {
			return true
		}
	}
	return false
}

// FileSystemType returns the type of the file system at path, such as ext4.
func FileSystemType(path string) (string, error) {
	all, err := mounts()
	if err != nil {
		return "", err
	}
	var at mount
	for _, m := range all { // a later one hides an earlier one at the same place
		holds := m.point == "/" || path == m.point || strings.HasPrefix(path, m.point+"/")
		if holds && len(m.point) >= len(at.point) {
			at = m
		}
	}
	return at.kind, nil
}

// mountPoints lists the mount points of all mounts.
func mountPoints() ([]string, error) {
	all, err := mounts()
	var points []string
	for _, m := range all {
		points = append(points, m.point)
	}
	return points, err
}

// mount is a mount: where it is, and the type of its file system.
type mount struct{ point, kind string }

// mounts reads the fifth field of the lines of proc_pid_mountinfo(5), where space, tab, newline and backslash are octal
// numbers, and the field after the lone dash.
func mounts() ([]mount, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts: %w", err)
	}
	defer f.Close()
	plain := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var all []mount
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 4 {
			m := mount{point: plain.Replace(fields[4])}
			if dash := slices.Index(fields, "-"); dash >= 0 && dash+1 < len(fields) {
				m.kind = fields[dash+1]
			}
			all = append(all, m)
		}
	}
	return all, nil
}

// Snapshotter returns the snapshotter of containerd for data in dir: overlayfs, or native if dir itself is on an
// overlay, as in a container without a volume. The kernel does not stack overlays.
func Snapshotter(dir string) string {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return OverlaySnapshotter
}

// OverlaySnapshotter is the snapshotter that needs the kernel's overlay file system.
const OverlaySnapshotter = "overlayfs"
