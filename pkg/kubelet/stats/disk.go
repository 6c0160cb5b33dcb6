package stats

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/kubelet/runtime"
)

// Disk is what a pod has on disks.
type Disk struct {
	// Layers are what its containers wrote outside their volumes, Logs their logs, by container; EmptyDirs are those on
	// the node's disk, by volume.
	Layers, Logs, EmptyDirs map[string]runtime.DiskUse
	// Claims are its claims that were measured, by volume.
	Claims map[string]Claim
}

// Claim is how full a claim is, in bytes and files.
type Claim struct {
	Name                           string
	Capacity, Available, Used      uint64
	Inodes, InodesFree, InodesUsed uint64
}

// show adds what pod has on disks to p. local is the file system of logs and emptyDirs, and stands for the pod's as a
// whole, layers that of what containers write; nil: what they use is shown without its size.
func (d Disk) show(p *statsapi.PodStats, pod *corev1.Pod, local, layers *statsapi.FsStats, now time.Time) {
	sum := runtime.DiskUse{}
	for i := range p.Containers {
		c := &p.Containers[i]
		if layer, ok := d.Layers[c.Name]; ok {
			c.Rootfs = partOf(layers, layer, now)
		}
		if logs, ok := d.Logs[c.Name]; ok {
			c.Logs = partOf(local, logs, now)
		}
	}
	for _, parts := range []map[string]runtime.DiskUse{d.Layers, d.Logs, d.EmptyDirs} {
		for _, use := range parts {
			sum = sum.Plus(use)
		}
	}
	p.EphemeralStorage = partOf(local, sum, now)
	for i := range pod.Spec.Volumes {
		name := pod.Spec.Volumes[i].Name
		if use, ok := d.EmptyDirs[name]; ok {
			p.VolumeStats = append(p.VolumeStats, statsapi.VolumeStats{Name: name, FsStats: *partOf(local, use, now)})
		}
		if c, ok := d.Claims[name]; ok {
			p.VolumeStats = append(p.VolumeStats,
				statsapi.VolumeStats{Name: name, PVCRef: &statsapi.PVCReference{Name: c.Name, Namespace: pod.Namespace},
					FsStats: statsapi.FsStats{Time: metav1.NewTime(now), CapacityBytes: &c.Capacity,
						AvailableBytes: &c.Available, UsedBytes: &c.Used,
						Inodes: &c.Inodes, InodesFree: &c.InodesFree, InodesUsed: &c.InodesUsed}})
		}
	}
}

// partOf is what one of its users has on a file system.
func partOf(fs *statsapi.FsStats, use runtime.DiskUse, now time.Time) *statsapi.FsStats {
	bytes, inodes := uint64(max(use.Bytes, 0)), uint64(max(use.Inodes, 0))
	out := statsapi.FsStats{Time: metav1.NewTime(now), UsedBytes: &bytes, InodesUsed: &inodes}
	if fs != nil {
		out.CapacityBytes, out.AvailableBytes, out.Inodes, out.InodesFree = fs.CapacityBytes, fs.AvailableBytes,
			fs.Inodes, fs.InodesFree
	}
	return &out
}
