package kubelet

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/stats"
)

// disks is what pods have on disks, for the summary: layers, logs and emptyDirs as measured within a minute or so, claims as their volumes' own passes have seen them.
func (k *Kubelet) disks(ctx context.Context, pods []*corev1.Pod) map[types.UID]stats.Disk {
	local, err := k.localUse.Usage(ctx, pods)
	if err != nil && ctx.Err() == nil {
		k.cfg.Log.Warn("local storage of pods not measured for the summary", "err", err)
	}
	out := make(map[types.UID]stats.Disk, len(pods))
	for _, p := range pods {
		u, ok := local[p.UID]
		d := stats.Disk{Layers: u.Layers, Logs: u.Logs, EmptyDirs: u.Volumes, Claims: map[string]stats.Claim{}}
		for _, v := range k.volumes.PodUsage(p.UID) {
			d.Claims[v.Volume] = stats.Claim{Name: v.Claim.Name, Capacity: v.Capacity, Available: v.Available, Used: v.Used,
				Inodes: v.Inodes, InodesFree: v.InodesFree, InodesUsed: v.InodesUsed}
		}
		if ok || len(d.Claims) > 0 {
			out[p.UID] = d
		}
	}
	return out
}

// filesystems are those of the runtime, for the summary, which is shown without them if it does not tell.
func (k *Kubelet) filesystems(ctx context.Context) (runtime.Filesystems, error) {
	fs, err := k.cri.Filesystems(ctx)
	if err != nil && ctx.Err() == nil {
		k.cfg.Log.Warn("file systems of the runtime not known to the summary", "err", err)
	}
	return fs, err
}
