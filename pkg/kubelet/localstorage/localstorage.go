// Package localstorage finds pods that use more of the node's disk than their limits for ephemeral storage allow
// (https://kubernetes.io/docs/concepts/storage/ephemeral-storage/). What is decided is pure; Tree and Logs measure,
// and a Watcher does so for all pods that have limits.
package localstorage

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/runtime"
)

// Usage is what a pod has on the node's disk.
type Usage struct {
	// Layers are what its containers have written outside their volumes, Logs their logs and termination messages, by
	// container; Volumes are the emptyDirs on disk, by name.
	Layers, Logs, Volumes map[string]runtime.DiskUse
}

// Container returns what a container uses apart from volumes.
func (u Usage) Container(name string) runtime.DiskUse { return u.Layers[name].Plus(u.Logs[name]) }

// Sum adds up what parts of a Usage hold.
func Sum(parts ...map[string]runtime.DiskUse) (sum runtime.DiskUse) {
	for _, p := range parts {
		for _, d := range p {
			sum = sum.Plus(d)
		}
	}
	return sum
}

// isLimited reports whether the pod has a limit that its usage could exceed. Critical pods are never evicted; an
// emptyDir in memory cannot grow beyond its size.
func isLimited(pod *corev1.Pod) bool {
	if runtime.Critical(pod) {
		return false
	}
	for _, v := range pod.Spec.Volumes {
		if onDisk(&v) && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() > 0 {
			return true
		}
	}
	_, limited := podLimit(pod)
	return limited
}

// onDisk reports whether v is an emptyDir on the node's disk.
func onDisk(v *corev1.Volume) bool {
	return v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumDefault
}

func podLimit(pod *corev1.Pod) (resource.Quantity, bool) {
	q, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return q, ok
}

// Signals of what has a limit.
const (
	signalEmptyDir  = "emptydirfs.limit"
	signalPod       = "ephemeralpodfs.limit"
	signalContainer = "ephemeralcontainerfs.limit"
)

// grace is what containers get that use too much: they fill the disk meanwhile.
const grace = time.Second

// exceeded is why the pod must go, nil if it is within its limits. They are looked at in this order: each emptyDir's
// sizeLimit, the pod's sum, each container's own.
func exceeded(pod *corev1.Pod, u Usage) *runtime.Ending {
	if !isLimited(pod) {
		return nil
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if !onDisk(v) {
			continue
		}
		if l := v.EmptyDir.SizeLimit; l != nil && l.Sign() > 0 && l.CmpInt64(u.Volumes[v.Name].Bytes) < 0 {
			return excess(signalEmptyDir,
				fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, l.String()))
		}
	}
	if l, ok := podLimit(pod); ok && l.CmpInt64(Sum(u.Layers, u.Logs, u.Volumes).Bytes) < 0 {
		return excess(signalPod,
			fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", l.String()))
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if l, ok := list[i].Resources.Limits[corev1.ResourceEphemeralStorage]; ok &&
				l.CmpInt64(u.Container(list[i].Name).Bytes) < 0 {
				return excess(signalContainer,
					fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", list[i].Name,
						l.String()))
			}
		}
	}
	return nil
}

func excess(signal, message string) *runtime.Ending {
	return &runtime.Ending{Reason: runtime.ReasonEvicted, Message: message, Signal: signal, Grace: grace}
}

// podLogs is the size and the number of the files in a container's log directory.
func podLogs(dir string) (total runtime.DiskUse) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return total
	}
	for _, e := range entries {
		if info, err := os.Lstat(filepath.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			total = total.Plus(runtime.DiskUse{Bytes: info.Size(), Inodes: 1})
		}
	}
	return total
}
