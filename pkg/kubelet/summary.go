package kubelet

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/stats"
	"bonsai/pkg/kubelet/volume"
)

// usage measures what pods use, for /stats/summary. Each method answers for one request and keeps nothing, except
// local.
type usage struct {
	cgroups *cgroup.Manager
	cri     *cri.Client
	volumes *volume.Manager
	// local measures layers, logs and emptyDirs, about once a minute.
	local *localstorage.Recent
	log   *slog.Logger
}

func newStats(cfg *Config, s signals, u usage) (*stats.Collector, error) {
	c, err := stats.New(stats.Config{NodeName: cfg.NodeName, Started: time.Now(), Dir: cfg.RootDir, Pods: s.pods.Pods,
		Now: time.Now, Pod: u.pod, Container: u.container, AllPods: u.allPods, Network: u.network,
		Filesystems: u.filesystems, Disk: u.disks, Pressures: u.cgroups.Version() == 2})
	if err != nil {
		return nil, fmt.Errorf("prepare statistics: %w", err)
	}
	return c, nil
}

func (u usage) pod(pod *corev1.Pod) (stats.Usage, error) {
	x, err := u.cgroups.PodUsage(pod)
	return stats.Usage(x), err
}

func (u usage) container(pod *corev1.Pod, id string) (stats.Usage, error) {
	x, err := u.cgroups.ContainerUsage(pod, id)
	return stats.Usage(x), err
}

func (u usage) allPods() (stats.Usage, error) {
	x, err := u.cgroups.PodsUsage()
	return stats.Usage(x), err
}

// network returns the interfaces of a pod that has a network of its own.
func (u usage) network(pod *corev1.Pod) []stats.Interface {
	if pod.Spec.HostNetwork {
		return nil
	}
	// Interfaces are read through /proc/PID/net of any process of the pod, because all share one network namespace.
	pid := u.cgroups.PodProcess(pod)
	if pid == 0 {
		return nil
	}
	return stats.Interfaces("/", pid)
}

// disks returns what pods have on disks. The figures of claims are the volume manager's own: measuring them here again
// would double the load of a slow storage driver.
func (u usage) disks(ctx context.Context, pods []*corev1.Pod) map[types.UID]stats.Disk {
	local, err := u.local.Usage(ctx, pods)
	if err != nil && ctx.Err() == nil {
		u.log.Warn("local storage of pods not measured for the summary", "err", err)
	}
	out := make(map[types.UID]stats.Disk, len(pods))
	for _, p := range pods {
		l, ok := local[p.UID]
		d := stats.Disk{Layers: l.Layers, Logs: l.Logs, EmptyDirs: l.Volumes, Claims: map[string]stats.Claim{}}
		for _, v := range u.volumes.PodUsage(p.UID) {
			d.Claims[v.Volume] = stats.Claim{Name: v.Claim.Name, Capacity: v.Capacity, Available: v.Available,
				Used: v.Used, Inodes: v.Inodes, InodesFree: v.InodesFree, InodesUsed: v.InodesUsed}
		}
		if ok || len(d.Claims) > 0 {
			out[p.UID] = d
		}
	}
	return out
}

// filesystems returns the runtime's file systems. Without them the summary is shown all the same. An error of the
// runtime leaves the figures out.
func (u usage) filesystems(ctx context.Context) (runtime.Filesystems, error) {
	fs, err := u.cri.Filesystems(ctx)
	if err != nil && ctx.Err() == nil {
		u.log.Warn("file systems of the runtime not known to the summary", "err", err)
	}
	return fs, err
}
