package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/eviction"
	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/housekeeping"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/stats"
	"bonsai/pkg/kubelet/syncloop"
	"bonsai/pkg/kubelet/volume/emptydir"
)

// evictionNode is the node as the eviction manager sees it. It lives here, and not in package eviction, because it
// needs cgroups, images and containers, and siblings do not import siblings.
type evictionNode struct {
	eviction.Observer
	cgroups *cgroup.Manager
	storage *localstorage.Watcher
	podDir  func(types.UID) (string, error) // where the pod's volumes are
	// dead are the containers that have ended, unused the images that no pod has: both go before a pod does.
	dead   housekeeping.Containers
	unused *images.Collector
}

var _ eviction.Node = evictionNode{}

// newEviction returns the eviction manager. It acts only once the sources have named their pods (Ready): it ranks all
// pods of the node, not only those that it has heard about first.
func newEviction(cfg *Config, r reporting, s signals, c *containers, sources *syncloop.Loop,
	volumes *volumeParts, storage *localstorage.Watcher, end func(types.UID, runtime.Ending) bool) (*eviction.Manager,
	error) {
	// Pods is the usage below the cgroup of all pods, whose limit is lower than the machine's memory if part of it is
	// reserved (allocatableMemory.available).
	look := eviction.Observer{Root: "/", Dir: cfg.RootDir, Filesystems: c.cri.Filesystems,
		Memory: func() (int64, int64, error) { return stats.Memory("/") },
		Pods: func() (used, available int64, limited bool, err error) {
			u, err := c.cgroups.PodsUsage()
			return int64(u.WorkingSetBytes), int64(u.MemoryAvail), u.MemoryLimitBytes > 0, err
		}}
	return eviction.New(eviction.Config{Policy: cfg.Eviction, Ready: sources.Spoken, Conditions: s.pressure,
		// Evict interrupts the pod's worker (ending), and Gone says when its containers and volumes are gone, so that
		// the manager waits for an eviction's effect before it evicts the next pod.
		Node: evictionNode{Observer: look, cgroups: c.cgroups, storage: storage, podDir: volumes.manager.PodDir,
			dead: c.dead, unused: c.unused},
		Pods:  func() []*corev1.Pod { return s.workers.Active(s.pods.Pods()) },
		Evict: end, Gone: s.workers.Cleaned, Changed: s.node.Notify, Now: time.Now, Log: cfg.Log,
		// age is that of the measurement, and shows how fast the kubelet reacts.
		Evicted: func(signal pressure.Signal, age time.Duration) { r.metrics.EvictionAge(string(signal), age) },
		Reclaiming: func(name corev1.ResourceName) {
			r.events.Node(corev1.EventTypeWarning, "EvictionThresholdMet",
				fmt.Sprintf("Attempting to reclaim %s", name))
		}})
}

// Reclaim implements eviction.Node. Only disks can be relieved without ending a pod: memory and processes cannot. Dead
// containers go before images, because their images become unused with them.
func (n evictionNode) Reclaim(signal pressure.Signal, d eviction.Disks) []func(context.Context) error {
	if signal.Condition() != corev1.NodeDiskPressure {
		return nil
	}
	var steps []func(context.Context) error
	// Dead containers take space where their layers are.
	if layersHere(signal, d) {
		steps = append(steps, n.dead.RemoveUnused)
	}
	// Images help only on their own file system.
	if signal.OfImages() || !d.ImagesApart {
		steps = append(steps, n.unused.RemoveUnused)
	}
	return steps
}

// layersHere reports whether the writable layers of containers are on the file system that the signal is about: on the
// only one, on that of the images, or on that of the node when the runtime keeps layers apart from images.
func layersHere(signal pressure.Signal, d eviction.Disks) bool {
	return !d.ImagesApart || signal.OfImages() == d.LayersApart
}

// Use implements eviction.Node. For memory and processes it reads cgroups, which is cheap; for disks it measures what
// lies on the file system of the signal, which may take long and ends with ctx.
func (n evictionNode) Use(ctx context.Context, pods []*corev1.Pod, signal pressure.Signal,
	d eviction.Disks) ([]pressure.Candidate, error) {
	var out []pressure.Candidate
	if signal.Condition() != corev1.NodeDiskPressure {
		for _, pod := range pods {
			if c, err := n.processUse(pod); err == nil { // it has not begun, or has just ended
				out = append(out, c)
			}
		}
		return out, nil
	}
	err := n.storage.Each(ctx, pods, func(pod *corev1.Pod, u localstorage.Usage) {
		var sum runtime.DiskUse
		if layersHere(signal, d) {
			sum = localstorage.Sum(u.Layers)
		}
		// Logs and emptyDirs are always on the node's file system.
		if !signal.OfImages() || !d.ImagesApart {
			sum = sum.Plus(localstorage.Sum(u.Logs, u.Volumes))
		}
		c := pressure.Candidate{Pod: pod, Use: diskUse(sum), Containers: map[string]pressure.Use{}}
		for name := range u.Logs {
			c.Containers[name] = diskUse(u.Container(name))
		}
		out = append(out, c)
	})
	return out, err
}

// A signal about inodes ranks by inodes, one about bytes by bytes: both are measured at once.
func diskUse(d runtime.DiskUse) pressure.Use {
	return pressure.Use{corev1.ResourceEphemeralStorage: d.Bytes, pressure.Inodes: d.Inodes}
}

// Kill implements eviction.Node. What the pod wrote into volumes in memory goes with its processes.
func (n evictionNode) Kill(ctx context.Context, pod *corev1.Pod) error {
	if err := n.cgroups.Kill(pod); err != nil {
		return err
	}
	dir, err := n.podDir(pod.UID)
	if err != nil {
		return err
	}
	return emptydir.Free(ctx, dir, pod)
}

// processUse returns the memory of a pod's processes, and their number.
func (n evictionNode) processUse(pod *corev1.Pod) (pressure.Candidate, error) {
	u, err := n.cgroups.PodUsage(pod)
	if err != nil {
		return pressure.Candidate{}, err
	}
	c := pressure.Candidate{Pod: pod, Containers: map[string]pressure.Use{},
		Use: pressure.Use{corev1.ResourceMemory: int64(u.WorkingSetBytes), pressure.Processes: int64(u.Processes)}}
	// The manager compares the use of single containers with their requests. A container that has just ended is left
	// out.
	for name, id := range stats.Running(pod) {
		if u, err := n.cgroups.ContainerUsage(pod, id); err == nil {
			c.Containers[name] = pressure.Use{corev1.ResourceMemory: int64(u.WorkingSetBytes)}
		}
	}
	return c, nil
}
