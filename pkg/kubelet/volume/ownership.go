package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// SetOwnership gives a volume that has data of its own, and everything in it, to the pod's fsGroup, which may read and
// write it. With the policy OnRootMismatch it leaves a volume alone whose root has that group and its permissions.
// Symbolic links get the group themselves and are not followed.
func SetOwnership(dir string, pod *corev1.Pod) error {
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
	// Directories come outermost first and are changed in reverse, the root last: it shows that the change is complete,
	// so an interrupted one starts over.
	var later []string
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			later = append(later, name)
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			return root.Lchown(name, -1, int(*own.Group))
		}
		return own.addFile(root, path.Clean(name))
	})
	if err != nil {
		return fmt.Errorf("give the volume to the pod's group: %w", err)
	}
	for i := len(later) - 1; i >= 0; i-- {
		if err := own.Apply(root, later[i]); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether a directory already belongs to the group, with its permissions.
func (o Owner) has(info fs.FileInfo) bool {
	want := o.mask() | 0o110
	return groupOf(info) == *o.Group && info.Mode().Perm()&want == want && info.Mode()&fs.ModeSetgid != 0
}

// addFile gives a file to the group, in addition to the permissions that it has.
func (o Owner) addFile(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if err := root.Lchown(name, -1, int(*o.Group)); err != nil {
		return err
	}
	return root.Chmod(name, info.Mode().Perm()|o.mask())
}

// groupOf returns the group of a file, -1 where the system does not report it.
func groupOf(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Gid)
	}
	return -1
}
