// Package localstorage finds pods that use more of the node's disk than their limits for ephemeral storage allow
// (https://kubernetes.io/docs/concepts/storage/ephemeral-storage/). What is decided is pure; Tree and Logs measure,
// and a Watcher does so for all pods that have limits.
package localstorage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/runtime"
)

// Usage is what a pod has on the node's disk, in bytes.
type Usage struct {
	// Containers have their writable layers and logs, by name; Volumes are the emptyDirs on disk, by name.
	Containers, Volumes map[string]int64
}

// Limited tells whether the pod has a limit that its usage could exceed. Critical pods are never evicted; an emptyDir in memory
// cannot grow beyond its size.
func Limited(pod *corev1.Pod) bool {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= runtime.SystemCriticalPriority {
		return false
	}
	for _, v := range pod.Spec.Volumes {
		if OnDisk(&v) && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0 {
			return true
		}
	}
	_, limited := podLimit(pod)
	return limited
}

// OnDisk tells whether v is an emptyDir on the node's disk.
func OnDisk(v *corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}

func podLimit(pod *corev1.Pod) (resource.Quantity, bool) {
	q, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return q, ok
}

// Excess is why a pod must go: the message of its status, and the signal that metrics count.
type Excess struct{ Signal, Message string }

// Signals of what has a limit.
const (
	signalEmptyDir  = "emptydirfs.limit"
	signalPod       = "ephemeralpodfs.limit"
	signalContainer = "ephemeralcontainerfs.limit"
)

// Exceeded is why the pod must go, nil if it is within its limits. They are looked at in this order: each emptyDir's sizeLimit, the
// pod's sum, each container's own.
func Exceeded(pod *corev1.Pod, u Usage) *Excess {
	if !Limited(pod) {
		return nil
	}
	var sum int64
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !OnDisk(v) {
			continue
		}
		sum += u.Volumes[v.Name]
		if l := v.EmptyDir.SizeLimit; l != nil && l.Sign() > 0 && l.CmpInt64(u.Volumes[v.Name]) < 0 {
			return &Excess{signalEmptyDir, fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, l.String())}
		}
	}
	for _, used := range u.Containers {
		sum += used
	}
	if l, ok := podLimit(pod); ok && l.CmpInt64(sum) < 0 {
		return &Excess{signalPod, fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", l.String())}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if l, ok := list[i].Resources.Limits[corev1.ResourceEphemeralStorage]; ok && l.CmpInt64(u.Containers[list[i].Name]) < 0 {
				return &Excess{signalContainer, fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", list[i].Name, l.String())}
			}
		}
	}
	return nil
}

// Tree is what the files below dir take on the disk: blocks, each file once however many names it has, without following links.
// Files that go meanwhile count nothing; a directory that is not there is empty.
func Tree(ctx context.Context, dir string) (int64, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("measure a directory: %w", err)
	}
	defer root.Close()
	type inode struct{ dev, ino uint64 }
	seen := map[inode]bool{}
	var total int64
	err = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return nil // it went away, or nobody may look
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		if st.Nlink > 1 && !d.IsDir() {
			if id := (inode{uint64(st.Dev), st.Ino}); seen[id] {
				return nil
			} else {
				seen[id] = true
			}
		}
		total += st.Blocks * 512
		return nil
	})
	return total, err
}

// Logs is the size of the files in a container's log directory.
func Logs(dir string) int64 {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	var total int64
	for _, e := range entries {
		if info, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			total += info.Size()
		}
	}
	return total
}
