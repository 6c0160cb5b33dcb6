package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path"

	corev1 "k8s.io/api/core/v1"
)

// Owner is the pod's fsGroup: volumes belong to that group, which may read them, and write them where they are
// writable.
type Owner struct {
	Group    *int64
	Writable bool
}

// OwnerOf returns the owner of a pod's volumes that only the kubelet writes.
func OwnerOf(pod *corev1.Pod) Owner {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return Owner{Group: sc.FSGroup}
	}
	return Owner{}
}

// Mode returns the permissions of a file that is to have m. If there is a group, it can also read the file, and write
// it if the volume is writable.
func (o Owner) Mode(m int32) fs.FileMode {
	mode := fs.FileMode(m) & fs.ModePerm
	if o.Group == nil {
		return mode
	}
	return mode | o.mask()
}

func (o Owner) mask() fs.FileMode {
	if o.Writable {
		return 0o660
	}
	return 0o440
}

// Apply gives a directory to the group. The setgid bit makes new files in it inherit that.
func (o Owner) Apply(root *os.Root, name string) error {
	if o.Group == nil {
		return nil
	}
	info, err := root.Stat(name)
	if err != nil {
		return fmt.Errorf("look at %q: %w", name, err)
	}
	if err := root.Lchown(name, -1, int(*o.Group)); err != nil {
		return fmt.Errorf("give %q to the pod's group: %w", name, err)
	}
	mode := info.Mode().Perm() | info.Mode()&fs.ModeSticky | o.mask() | fs.ModeSetgid | 0o110
	if err := root.Chmod(name, mode); err != nil {
		return fmt.Errorf("let the pod's group into %q: %w", name, err)
	}
	return nil
}

// ApplyFile sets the file's group and permissions.
func (o Owner) ApplyFile(root *os.Root, name string, mode int32) error {
	if o.Group != nil {
		if err := root.Lchown(name, -1, int(*o.Group)); err != nil {
			return fmt.Errorf("give %q to the pod's group: %w", name, err)
		}
	}
	if err := root.Chmod(name, o.Mode(mode)); err != nil {
		return fmt.Errorf("set the mode of %q: %w", name, err)
	}
	return nil
}

// ApplyTree applies the owner to a directory and all directories below it.
func (o Owner) ApplyTree(root *os.Root, name string) error {
	return fs.WalkDir(root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		// The umask must not decide whether other users find the files.
		if err := root.Chmod(path.Clean(p), 0o755); err != nil {
			return err
		}
		return o.Apply(root, p)
	})
}
