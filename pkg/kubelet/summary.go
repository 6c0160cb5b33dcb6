package kubelet

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/runtime"
)

// Summary is the use of resources by the node and its pods, as /stats/summary shows it. What cannot be measured is left out.
func (k *Kubelet) Summary(ctx context.Context) (*statsapi.Summary, error) {
	now := metav1.Now()
	pods, err := k.cri.Pods(ctx)
	if err != nil {
		return nil, err
	}
	s := &statsapi.Summary{Node: statsapi.NodeStats{NodeName: k.cfg.NodeName, StartTime: now, Fs: k.filesystem(now)}}
	available := uint64(k.cfg.Node.Machine.Available().Memory)
	s.Node.Memory = &statsapi.MemoryStats{Time: now, AvailableBytes: &available}
	for _, p := range pods {
		pod := k.pod(p.UID)
		if pod == nil {
			continue
		}
		s.Pods = append(s.Pods, k.podStats(now, pod, p))
	}
	return s, nil
}

func (k *Kubelet) podStats(now metav1.Time, pod *corev1.Pod, rt *runtime.PodStatus) statsapi.PodStats {
	ps := statsapi.PodStats{PodRef: statsapi.PodReference{Name: pod.Name, Namespace: pod.Namespace, UID: string(pod.UID)}}
	if pod.Status.StartTime != nil {
		ps.StartTime = *pod.Status.StartTime
	}
	if u, err := k.cgroups.PodUsage(pod); err == nil {
		ps.CPU, ps.Memory = usage(now, u)
	}
	for _, c := range rt.Containers {
		if c.State != runtime.StateRunning {
			continue
		}
		cs := statsapi.ContainerStats{Name: c.Name, StartTime: metav1.NewTime(c.CreatedAt)}
		if u, err := k.cgroups.ContainerUsage(pod, c.ID.ID); err == nil {
			cs.CPU, cs.Memory = usage(now, u)
		}
		ps.Containers = append(ps.Containers, cs)
	}
	return ps
}

func usage(now metav1.Time, u cgroup.Usage) (*statsapi.CPUStats, *statsapi.MemoryStats) {
	m := &statsapi.MemoryStats{Time: now, UsageBytes: &u.MemoryBytes, WorkingSetBytes: &u.WorkingSetBytes, RSSBytes: &u.RSSBytes,
		PageFaults: &u.PageFaults, MajorPageFaults: &u.MajorPageFaults}
	if u.MemoryLimitBytes > 0 {
		m.AvailableBytes = &u.MemoryAvail
	}
	return &statsapi.CPUStats{Time: now, UsageCoreNanoSeconds: &u.CPUNanoseconds}, m
}

func (k *Kubelet) filesystem(now metav1.Time) *statsapi.FsStats {
	var fs unix.Statfs_t
	if err := unix.Statfs(k.cfg.RootDir, &fs); err != nil {
		return nil
	}
	size := uint64(fs.Bsize)
	available, capacity, used := fs.Bavail*size, fs.Blocks*size, (fs.Blocks-fs.Bfree)*size
	inodes, free := fs.Files, fs.Ffree
	return &statsapi.FsStats{Time: metav1.NewTime(now.Time.Truncate(time.Second)), AvailableBytes: &available, CapacityBytes: &capacity,
		UsedBytes: &used, Inodes: &inodes, InodesFree: &free}
}
