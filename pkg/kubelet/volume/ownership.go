package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/filetree"
)

// SetOwnership gives a volume that has data of its own, and everything in it, to the pod's fsGroup, which may read and
// write it. With the policy OnRootMismatch it leaves a volume alone whose root has that group and its permissions.
// Symbolic links get the group themselves and are not followed. What is mounted in the volume is left alone.
func SetOwnership(ctx context.Context, dir string, pod *corev1.Pod) error {
	sc := pod.Spec.SecurityContext
	if sc == nil || sc.FSGroup == nil {
		return nil
	}
	own := Owner{Group: sc.FSGroup, Writable: true}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the volume: %w", err)
	}
	defer root.Close()
	if p := sc.FSGroupChangePolicy; p != nil && *p == corev1.FSGroupChangeOnRootMismatch {
		info, err := root.Stat(".")
		if err != nil {
			return fmt.Errorf("look at the volume: %w", err)
		}
		if own.has(info) {
			return nil
		}
	}
	top, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("open the volume: %w", err)
	}
	g := giving{own: own}
	if err := errors.Join(filetree.Walk(ctx, top, &g), g.err); err != nil {
		return fmt.Errorf("give the volume to the pod's group: %w", err)
	}
	// The root comes last: it shows that the change is complete, so that an interrupted one starts over.
	return own.Apply(root, ".")
}

// has reports whether a directory already belongs to the group, with its permissions.
func (o Owner) has(info fs.FileInfo) bool {
	want := o.mask() | 0o110
	return groupOf(info) == *o.Group && info.Mode().Perm()&want == want && info.Mode()&fs.ModeSetgid != 0
}

// giving gives what a walk comes by to a group: files at once, and directories after what is in them. The pod may have
// exchanged anything for something else since, so that each is opened before it is looked at and changed.
type giving struct {
	own Owner
	err error // the first
}

// Entry implements filetree.Visitor.
func (g *giving) Entry(dir int, name string) bool {
	if g.err != nil {
		return false
	}
	enter, err := g.give(dir, name, false)
	g.note(name, err)
	return enter
}

// Leave implements filetree.Visitor.
func (g *giving) Leave(dir int, name string, err error) {
	if errors.Is(err, unix.EXDEV) {
		return // something else is mounted there
	}
	if err == nil && g.err == nil {
		_, err = g.give(dir, name, true)
	}
	g.note(name, err)
}

// note keeps the first error. What has been removed or exchanged meanwhile is none.
func (g *giving) note(name string, err error) {
	if err != nil && g.err == nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ELOOP) &&
		!errors.Is(err, unix.ENOTDIR) {
		g.err = fmt.Errorf("%.100q: %w", name, err)
	}
}

// give changes a file, in addition to the permissions that it has. Directories are changed only if left says that the
// walk has left them; before, give reports that there is one.
func (g *giving) give(dir int, name string, left bool) (isDir bool, err error) {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, err
	}
	kind := st.Mode & unix.S_IFMT
	isDir = kind == unix.S_IFDIR
	if isDir && !left {
		return true, nil
	}
	if err := unix.Fchownat(fd, "", -1, int(*g.own.Group), unix.AT_EMPTY_PATH); err != nil {
		return false, err
	}
	mode := st.Mode&0o777 | uint32(g.own.mask())
	switch {
	case kind == unix.S_IFLNK:
		return false, nil // its permissions mean nothing
	case isDir:
		mode |= st.Mode&unix.S_ISVTX | unix.S_ISGID | 0o110 // new files in it inherit the group
	}
	return isDir, unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
}

// groupOf returns the group of a file, -1 where the system does not report it.
func groupOf(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Gid)
	}
	return -1
}
