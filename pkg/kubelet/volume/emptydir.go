package volume

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// EmptyDirPath is where the emptyDir called name of a pod is, whose own directory is podDir (Manager.PodDir).
func EmptyDirPath(podDir, name string) string {
	return filepath.Join(podDir, "volumes", "kubernetes.io~empty-dir", name)
}

// makeEmptyDir makes an emptyDir open to every user of the pod, on disk or in memory. One that is complete stays as it is, as the pod's
// containers may have changed it; the file done says so, outside of what they see. One that was left half-made is completed.
func makeEmptyDir(dir, done string, pod *corev1.Pod, v *corev1.EmptyDirVolumeSource) error {
	memory := false
	switch v.Medium {
	case corev1.StorageMediumDefault:
	case corev1.StorageMediumMemory:
		memory = true
	default:
		return fmt.Errorf("unknown storage medium %q", v.Medium)
	}
	if _, err := os.Lstat(done); err == nil && ready(dir, memory) {
		return nil
	}
	if err := makeDir(dir, memory, memorySize(pod, v)); err != nil {
		return err
	}
	own := ownerOf(pod)
	own.writable = true
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the volume: %w", err)
	}
	defer root.Close()
	if err := own.apply(root, "."); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(done), 0o750); err != nil {
		return fmt.Errorf("make the volume's record: %w", err)
	}
	if err := os.WriteFile(done, nil, 0o640); err != nil {
		return fmt.Errorf("note that the volume is complete: %w", err)
	}
	return nil
}

// memorySize is the size of an emptyDir in memory: its limit, but no more than what the pod may use. 0 leaves it to the kernel
// (half of the machine's memory).
func memorySize(pod *corev1.Pod, v *corev1.EmptyDirVolumeSource) int64 {
	var size int64
	if v.SizeLimit != nil {
		size = v.SizeLimit.Value()
	}
	for i := range pod.Spec.Containers {
		if l := pod.Spec.Containers[i].Resources.Limits; l.Memory().IsZero() {
			return size
		}
	}
	limits := resource.PodLimits(pod, resource.PodResourcesOptions{})
	limit := limits.Memory().Value()
	if limit > 0 && (size == 0 || limit < size) {
		return limit
	}
	return size
}

// ready tells whether dir exists as makeDir leaves it.
func ready(dir string, memory bool) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && (!memory || isMountPoint(dir))
}

// makeDir makes a directory of mode 0777, a tmpfs of the given size (bytes, 0: the kernel's default) if in memory. It appears with its
// mode, or not at all.
func makeDir(dir string, memory bool, size int64) error {
	if ready(dir, memory) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return fmt.Errorf("make the volume's parent: %w", err)
	}
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		next := filepath.Join(filepath.Dir(dir), ".new-"+filepath.Base(dir)) // no volume's name begins with a dot
		if err := os.Mkdir(next, 0o777); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make the volume: %w", err)
		}
		if err := os.Chmod(next, 0o777); err != nil {
			return fmt.Errorf("open the volume to all users: %w", err)
		}
		if err := os.Rename(next, dir); err != nil {
			return fmt.Errorf("make the volume: %w", err)
		}
	}
	if memory {
		options := "mode=0777"
		if size > 0 {
			options += ",size=" + strconv.FormatInt(size, 10)
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
			return fmt.Errorf("mount a tmpfs of %d bytes at %s: %w", size, dir, err)
		}
	}
	return nil
}

// isMountPoint compares the devices of a directory and its parent; that sees every tmpfs, though not bind mounts.
func isMountPoint(dir string) bool {
	var a, b syscall.Stat_t
	return syscall.Lstat(dir, &a) == nil && syscall.Lstat(filepath.Dir(dir), &b) == nil && a.Dev != b.Dev
}
