package volume

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// SubPath makes a part of a volume mountable. It resolves subPath (after the expansion of a subPathExpr) below the
// volume without following any link out of it, makes a directory if nothing is there, and binds what it found to a
// place of the kubelet's own, so that nobody can exchange it between the check and the mount. index is the position
// among the container's mounts. Unmount removes the bind mount; calling SubPath again binds again, as a restarted
// container expects. Containers of the pod can write to the volume while this runs, and replace a directory by a link
// to the node's files. Each step below the volume therefore works on an open descriptor or on a root, and never trusts
// a path that was checked before. The pod's lock is held only for the mount itself.
func (m *Manager) SubPath(pod *corev1.Pod, container string, index int, volume string, from Mounted,
	subPath string) (string, error) {
	if filepath.IsAbs(subPath) {
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", subPath)
	}
	if strings.HasPrefix(filepath.Clean(subPath), "..") || !filepath.IsLocal(subPath) {
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", subPath)
	}
	podDir, err := m.PodDir(pod.UID)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(volume) || !filepath.IsLocal(container) || strings.ContainsRune(volume+container, '/') {
		return "", errors.New("the volume's or container's name is no file name")
	}
	if err := makeBeneath(from.HostPath, subPath); err != nil {
		return "", fmt.Errorf("create the subPath directory: %w", err)
	}
	fd, err := openBeneath(from.HostPath, subPath)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	target := filepath.Join(podDir, subPaths, volume, container, strconv.Itoa(index))
	p := m.entry(pod.UID, true)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := bind(fd, target); err != nil {
		return "", err
	}
	return target, nil
}

// makeBeneath makes subPath a directory if it does not exist, with the permissions of the volume itself. os.Root
// resolves each part below the volume and refuses links that lead out of it. Chmod follows Mkdir because the umask cuts
// the latter's mode. Directories that were made stay if a later step fails.
func makeBeneath(volume, subPath string) error {
	if info, err := os.Stat(volume); err != nil || !info.IsDir() { // opening a pipe would wait for its writer
		return cmp.Or(err, error(&os.PathError{Op: "open", Path: volume, Err: unix.ENOTDIR}))
	}
	root, err := os.OpenRoot(volume)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := root.Stat(subPath); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	made := ""
	for part := range strings.SplitSeq(filepath.Clean(subPath), "/") {
		made = filepath.Join(made, part)
		if err := root.Mkdir(made, 0o750); errors.Is(err, os.ErrExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := root.Chmod(made, info.Mode().Perm()|info.Mode()&os.ModeSetgid); err != nil {
			return err
		}
	}
	return nil
}

// openBeneath opens subPath with O_PATH; the kernel refuses every way out of the volume (openat2 with RESOLVE_BENEATH).
// The caller closes the descriptor. O_PATH opens without reading: a pipe or a device does not block.
// RESOLVE_NO_MAGICLINKS excludes the links in /proc that lead to any open file.
func openBeneath(volume, subPath string) (int, error) {
	root, err := unix.Open(volume, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", volume, err)
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(root, filepath.Clean(subPath), how)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN): // a rename raced with the resolution
		case errors.Is(err, unix.EXDEV):
			return -1, fmt.Errorf("subpath %q not within volume path", subPath)
		case err != nil:
			return -1, fmt.Errorf("resolve subPath %q: %w", subPath, err)
		default:
			return fd, nil
		}
	}
}

// bind mounts what fd refers to at target and replaces what was mounted there. It goes through /proc/self/fd: the path
// may lead elsewhere by now, the descriptor cannot. The caller holds the pod's lock. A directory needs a directory as
// its mount point, everything else a file. MS_REC takes mounts below it along.
func bind(fd int, target string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at the subPath: %w", err)
	}
	if err := unmountBeneath(target); err != nil {
		return err
	}
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("clear the mount point: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o750); err != nil {
		return fmt.Errorf("make the mount point's parent: %w", err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if err := os.Mkdir(target, 0o750); err != nil {
			return fmt.Errorf("make the mount point: %w", err)
		}
	} else if err := os.WriteFile(target, nil, 0o640); err != nil {
		return fmt.Errorf("make the mount point: %w", err)
	}
	if err := unix.Mount("/proc/self/fd/"+strconv.Itoa(fd), target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind the subPath to %s: %w", target, err)
	}
	return nil
}
