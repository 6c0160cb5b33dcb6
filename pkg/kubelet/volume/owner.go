package volume

import (
	"fmt"
	"io/fs"
	"os"
	"path"

	corev1 "k8s.io/api/core/v1"
)

// owner is the pod's fsGroup: volumes belong to that group, which may read them and, where they are writable, write them.
type owner struct {
	group    *int64
	writable bool
}

func ownerOf(pod *corev1.Pod) owner {
	if sc := pod.Spec.SecurityContext; sc != nil {
		return owner{group: sc.FSGroup}
	}
	return owner{}
}

// mode is what a file with the given permissions ends up with.
func (o owner) mode(m int32) fs.FileMode {
	mode := fs.FileMode(m) & fs.ModePerm
	if o.group == nil {
		return mode
	}
	return mode | o.mask()
}

func (o owner) mask() fs.FileMode {
	if o.writable {
		return 0o660
	}
	return 0o440
}

// apply gives a directory to the group: what is made in it inherits that.
func (o owner) apply(root *os.Root, name string) error {
	if o.group == nil {
		return nil
	}
	info, err := root.Stat(name)
	if err != nil {
		return fmt.Errorf("look at %q: %w", name, err)
	}
	if err := root.Lchown(name, -1, int(*o.group)); err != nil {
		return fmt.Errorf("give %q to the pod's group: %w", name, err)
	}
	mode := info.Mode().Perm() | info.Mode()&fs.ModeSticky | o.mask() | fs.ModeSetgid | 0o110
	if err := root.Chmod(name, mode); err != nil {
		return fmt.Errorf("let the pod's group into %q: %w", name, err)
	}
	return nil
}

// applyFile sets the file's group and permissions.
func (o owner) applyFile(root *os.Root, name string, mode int32) error {
	if o.group != nil {
		if err := root.Lchown(name, -1, int(*o.group)); err != nil {
			return fmt.Errorf("give %q to the pod's group: %w", name, err)
		}
	}
	if err := root.Chmod(name, o.mode(mode)); err != nil {
		return fmt.Errorf("set the mode of %q: %w", name, err)
	}
	return nil
}

// applyTree applies the owner to a directory and all directories beneath it.
func (o owner) applyTree(root *os.Root, name string) error {
	return fs.WalkDir(root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		// The umask must not decide whether other users find the files.
		if err := root.Chmod(path.Clean(p), 0o755); err != nil {
			return err
		}
		return o.apply(root, p)
	})
}

// commonUser is the user all containers of the pod run as, if the spec says that and it is the same one.
func commonUser(pod *corev1.Pod) *int64 {
	var byPod, common *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		byPod = sc.RunAsUser
	}
	same := true
	see := func(sc *corev1.SecurityContext) {
		user := byPod
		if sc != nil && sc.RunAsUser != nil {
			user = sc.RunAsUser
		}
		switch {
		case user == nil || common != nil && *common != *user:
			same = false
		default:
			common = user
		}
	}
	for i := range pod.Spec.InitContainers {
		see(pod.Spec.InitContainers[i].SecurityContext)
	}
	for i := range pod.Spec.Containers {
		see(pod.Spec.Containers[i].SecurityContext)
	}
	for i := range pod.Spec.EphemeralContainers {
		see(pod.Spec.EphemeralContainers[i].SecurityContext)
	}
	if !same {
		return nil
	}
	return common
}
