package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/eviction"
	"bonsai/pkg/kubelet/eviction/pressure"
	"bonsai/pkg/kubelet/localstorage"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/shutdown"
	"bonsai/pkg/kubelet/stats"
)

// evictionNode is the node as the eviction manager sees it.
type evictionNode struct {
	eviction.Observer
	*Kubelet
}

var _ eviction.Node = evictionNode{}

func (k *Kubelet) composeEviction() error {
	var err error
	look := eviction.Observer{Root: "/", Dir: k.cfg.RootDir, Filesystems: k.cri.Filesystems, Memory: func() (int64, int64, error) { return stats.Memory("/") },
		Pods: func() (used, available int64, limited bool, err error) {
			u, err := k.cgroups.PodsUsage()
			return int64(u.WorkingSetBytes), int64(u.MemoryAvail), u.MemoryLimitBytes > 0, err
		}}
	k.eviction, err = eviction.New(eviction.Config{Policy: k.cfg.Eviction, Ready: func() bool { return k.sources.Spoken() }, Node: evictionNode{look, k}, Pods: func() []*corev1.Pod { return k.workers.Active(k.pods.Pods()) },
		Evict: k.end, Evicted: func(signal pressure.Signal, age time.Duration) { k.metrics.EvictionAge(string(signal), age) }, Gone: k.workers.Cleaned, Changed: k.nodeChanged.Notify, Now: time.Now, Log: k.cfg.Log,
		Reclaiming: func(name corev1.ResourceName) {
			k.events.Node(corev1.EventTypeWarning, "EvictionThresholdMet", fmt.Sprintf("Attempting to reclaim %s", name))
		}})
	return err
}

// end has a pod end that the node cannot keep.
func (k *Kubelet) end(uid types.UID, why runtime.Ending) bool {
	ends := k.syncer.End(uid, why)
	if ends {
		k.workers.Interrupt(uid)
	}
	return ends
}

// refuse tells why the node takes no such pods at present.
func (k *Kubelet) refuse(pod *corev1.Pod) *admission.Rejection {
	if why := k.eviction.Refuse(pod); why != "" {
		return &admission.Rejection{Reason: runtime.ReasonEvicted, Message: why}
	}
	if why := k.shutdown.Refuse(); why != "" {
		return &admission.Rejection{Reason: shutdown.ReasonRefused, Message: why}
	}
	return nil
}

func (k *Kubelet) composeShutdown() error {
	var err error
	k.shutdown, err = shutdown.New(shutdown.Config{Periods: k.cfg.Shutdown, Connect: shutdown.ConnectSystemBus, Pods: k.active, End: k.end, Changed: k.nodeChanged.Notify,
		Began: k.metrics.ShutdownBegan, Over: k.metrics.ShutdownOver, Log: k.cfg.Log})
	return err
}

// pressure is what the Node's conditions say of what runs short.
func (k *Kubelet) pressure() node.Pressure {
	return node.Pressure{Memory: k.eviction.Under(corev1.NodeMemoryPressure), Disk: k.eviction.Under(corev1.NodeDiskPressure), PID: k.eviction.Under(corev1.NodePIDPressure)}
}

// Reclaim implements eviction.Node.
func (n evictionNode) Reclaim(signal pressure.Signal, d eviction.Disks) []func(context.Context) error {
	if signal.Condition() != corev1.NodeDiskPressure {
		return nil
	}
	var steps []func(context.Context) error
	if layersHere(signal, d) {
		steps = append(steps, n.deadContainers().RemoveUnused)
	}
	if signal.OfImages() || !d.ImagesApart {
		steps = append(steps, n.unused.RemoveUnused)
	}
	return steps
}

// layersHere tells whether what containers write lies on the file system of the signal.
func layersHere(signal pressure.Signal, d eviction.Disks) bool {
	return !d.ImagesApart || signal.OfImages() == d.LayersApart
}

// Use implements eviction.Node.
func (n evictionNode) Use(ctx context.Context, pods []*corev1.Pod, signal pressure.Signal, d eviction.Disks) ([]pressure.Candidate, error) {
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

func diskUse(d runtime.DiskUse) pressure.Use {
	return pressure.Use{corev1.ResourceEphemeralStorage: d.Bytes, pressure.Inodes: d.Inodes}
}

// processUse is what a pod's processes have, and how many they are.
func (n evictionNode) processUse(pod *corev1.Pod) (pressure.Candidate, error) {
	u, err := n.cgroups.PodUsage(pod)
	if err != nil {
		return pressure.Candidate{}, err
	}
	c := pressure.Candidate{Pod: pod, Containers: map[string]pressure.Use{},
		Use: pressure.Use{corev1.ResourceMemory: int64(u.WorkingSetBytes), pressure.Processes: int64(u.Processes)}}
	for name, id := range stats.Running(pod) {
		if u, err := n.cgroups.ContainerUsage(pod, id); err == nil {
			c.Containers[name] = pressure.Use{corev1.ResourceMemory: int64(u.WorkingSetBytes)}
		}
	}
	return c, nil
}
