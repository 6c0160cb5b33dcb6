// Package stats computes the kubelet's summary of resource use (/stats/summary): of the node from /proc, of pods and
// containers from their cgroups. Rates (usageNanoCores) are between one summary and the one before.
package stats

import (
	"context"
	"errors"
	"iter"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/kubelet/psi"
	"bonsai/pkg/kubelet/runtime"
)

// Usage is what the processes of a cgroup have used: CPU since it exists, the rest now.
type Usage struct {
	CPUNanoseconds                uint64
	MemoryBytes, WorkingSetBytes  uint64
	RSSBytes                      uint64
	PageFaults, MajorPageFaults   uint64
	Processes                     uint64
	MemoryLimitBytes, MemoryAvail uint64 // 0 without a limit
	Swap                          uint64 // bytes
	// SwapAvail is how much more swap there may be, in bytes; it says nothing unless SwapLimited.
	SwapAvail   uint64
	SwapLimited bool
	// The pressures are nil if they are not known.
	CPUPressure, MemoryPressure, IOPressure *psi.Pressure
}

// Config is what a Collector needs; all are required but Root, AllPods, Filesystems and Disk.
type Config struct {
	NodeName string
	// Started is when the node started; Dir the kubelet's root directory, whose file system is shown as the node's.
	Started time.Time
	Dir     string
	// Pods are the pods the kubelet runs, with statuses.
	Pods func() []*corev1.Pod
	// Pod and Container read the use of a pod, and of one of its containers by the runtime's ID.
	Pod       func(pod *corev1.Pod) (Usage, error)
	Container func(pod *corev1.Pod, id string) (Usage, error)
	// Network are the interfaces of a pod that has a network of its own; nil for others.
	Network func(pod *corev1.Pod) []Interface
	// AllPods reads the use of all pods together; nil: it is not shown.
	AllPods func() (Usage, error)
	// Filesystems tells where the runtime keeps images and what containers write, and what it has there; nil, or with
	// an error, that is not shown. Whole summaries ask for it.
	Filesystems func(ctx context.Context) (runtime.Filesystems, error)
	// Disk is what pods have on disks, by UID, as far as it is known; nil: it is not shown. It may take as long as the
	// disks: only whole summaries ask for it.
	Disk func(ctx context.Context, pods []*corev1.Pod) map[types.UID]Disk
	Now  func() time.Time
	// Pressures: the node's pressures are shown, as far as the kernel tells them. Pods' and containers' always are.
	Pressures bool
	// Root is where /proc is found, "/" by default.
	Root string
}

// Collector computes summaries. It is safe for concurrent use.
type Collector struct {
	cfg Config

	mu   sync.Mutex
	last map[string]sample // by what was measured
}

// sample is one reading of a CPU counter; rate is the rate that was computed with it.
type sample struct {
	at   time.Time
	cpu  uint64
	rate uint64
}

// New checks the configuration.
func New(cfg Config) (*Collector, error) {
	if cfg.Pods == nil || cfg.Pod == nil || cfg.Container == nil || cfg.Network == nil || cfg.Now == nil ||
		cfg.Dir == "" {
		return nil, errors.New("stats: Pods, Pod, Container, Network, Now and Dir are required")
	}
	if cfg.Root == "" {
		cfg.Root = "/"
	}
	return &Collector{cfg: cfg, last: map[string]sample{}}, nil
}

// Summary computes the summary of now, or its CPU and memory only. Pods and containers that cannot be read (they just
// ended) are shown without numbers.
//
// Handlers of requests call it, one at a time under mu: each summary's rates are relative to the last one. Slow parts,
// the disks, are read before the lock.
func (c *Collector) Summary(ctx context.Context, onlyCPUAndMemory bool) (*statsapi.Summary, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var pods []*corev1.Pod
	for _, pod := range c.cfg.Pods() {
		if pod.Status.Phase == corev1.PodRunning {
			pods = append(pods, pod)
		}
	}
	var disks map[types.UID]Disk
	if !onlyCPUAndMemory && c.cfg.Disk != nil {
		disks = c.cfg.Disk(ctx, pods) // before the lock, which others wait for
	}
	images, layers := c.runtimeDisks(ctx, onlyCPUAndMemory)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	next := map[string]sample{}
	sum := &statsapi.Summary{Pods: []statsapi.PodStats{}}
	node, err := readNode(c.cfg.Root)
	if err != nil {
		return nil, err
	}
	if c.cfg.Pressures {
		node.memory.readPressures(c.cfg.Root)
	}
	sum.Node = statsapi.NodeStats{NodeName: c.cfg.NodeName, StartTime: metav1.NewTime(c.cfg.Started),
		CPU: c.cpu("node", node.cpu, node.memory.CPUPressure, now, next), Memory: memory(node.memory, now),
		IO: io(node.memory, now),
		Swap: &statsapi.SwapStats{Time: metav1.NewTime(now), SwapUsageBytes: &node.memory.Swap,
			SwapAvailableBytes: &node.swapFree}}
	var fs *statsapi.FsStats
	if !onlyCPUAndMemory {
		fs = fileSystem(c.cfg.Dir, now)
		sum.Node.Network, sum.Node.Fs, sum.Node.Runtime = network(node.interfaces, node.primary, now), fs,
			&statsapi.RuntimeStats{ImageFs: images, ContainerFs: layers}
		sum.Node.Rlimit = processes(c.cfg.Root, now)
	}
	if c.cfg.AllPods != nil {
		sum.Node.SystemContainers = c.system(now, next)
	}
	for _, pod := range pods {
		p := c.pod(pod, now, next)
		if !onlyCPUAndMemory {
			p.Network = c.network(pod, now)
		}
		if d, ok := disks[pod.UID]; ok {
			d.show(&p, pod, fs, layers, now)
		}
		if onlyCPUAndMemory {
			p.ProcessStats = nil
		}
		sum.Pods = append(sum.Pods, p)
	}
	// Only what exists now: entries of pods that ended go with the old map.
	c.last = next
	return sum, nil
}

// runtimeDisks returns the file systems of images and of writable layers, each with the part that the runtime uses; nil
// where that is unknown.
func (c *Collector) runtimeDisks(ctx context.Context, onlyCPUAndMemory bool) (images, layers *statsapi.FsStats) {
	if onlyCPUAndMemory || c.cfg.Filesystems == nil {
		return nil, nil
	}
	fs, err := c.cfg.Filesystems(ctx)
	if err != nil {
		return nil, nil
	}
	now := c.cfg.Now()
	of := func(dir string, use runtime.DiskUse) *statsapi.FsStats {
		whole := fileSystem(dir, now)
		if whole == nil {
			return nil
		}
		return partOf(whole, use, now)
	}
	return of(fs.Images, fs.ImagesUse), of(fs.Containers, fs.ContainersUse)
}

// system are the containers of the node that are no pod's: all pods together, as Kubernetes calls them.
func (c *Collector) system(now time.Time, next map[string]sample) []statsapi.ContainerStats {
	u, err := c.cfg.AllPods()
	if err != nil {
		return nil
	}
	return []statsapi.ContainerStats{{Name: statsapi.SystemContainerPods, StartTime: metav1.NewTime(c.cfg.Started),
		CPU: c.cpu("pods", u.CPUNanoseconds, u.CPUPressure, now, next), Memory: memory(u, now), IO: io(u, now),
		Swap: swap(u, now)}}
}

func (c *Collector) pod(pod *corev1.Pod, now time.Time, next map[string]sample) statsapi.PodStats {
	p := statsapi.PodStats{PodRef: statsapi.PodReference{Name: pod.Name, Namespace: pod.Namespace,
		UID: string(pod.UID)}, Containers: []statsapi.ContainerStats{}}
	if pod.Status.StartTime != nil {
		p.StartTime = *pod.Status.StartTime
	}
	if u, err := c.cfg.Pod(pod); err == nil {
		p.CPU, p.Memory = c.cpu(string(pod.UID), u.CPUNanoseconds, u.CPUPressure, now, next), memory(u, now)
		p.IO, p.Swap = io(u, now), swap(u, now)
		p.ProcessStats = &statsapi.ProcessStats{ProcessCount: &u.Processes}
	}
	for st := range running(pod) {
		one := statsapi.ContainerStats{Name: st.Name, StartTime: st.State.Running.StartedAt}
		if u, err := c.cfg.Container(pod, runtimeID(st.ContainerID)); err == nil {
			one.CPU, one.Memory = c.cpu(st.ContainerID, u.CPUNanoseconds, u.CPUPressure, now, next), memory(u, now)
			one.IO, one.Swap = io(u, now), swap(u, now)
		}
		p.Containers = append(p.Containers, one)
	}
	return p
}

// network is what came in and went out of a pod that has a network of its own; nil for others.
func (c *Collector) network(pod *corev1.Pod, now time.Time) *statsapi.NetworkStats {
	list := c.cfg.Network(pod)
	if len(list) == 0 {
		return nil
	}
	return network(list, podInterface, now)
}

// running yields the status of each container that runs, of every kind, as the pod's status says.
func running(pod *corev1.Pod) iter.Seq[*corev1.ContainerStatus] {
	return func(yield func(*corev1.ContainerStatus) bool) {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
			pod.Status.EphemeralContainerStatuses} {
			for i := range list {
				if list[i].State.Running != nil && !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Running are the names of the pod's containers that run, with the runtime's ids.
func Running(pod *corev1.Pod) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for st := range running(pod) {
			if !yield(st.Name, runtimeID(st.ContainerID)) {
				return
			}
		}
	}
}

// podInterface is the interface that a pod's network plug-in makes.
const podInterface = "eth0"

// minInterval is the least time between two readings that gives a meaningful rate.
const minInterval = time.Second

// cpu reports a counter and its rate since the last reading that is not too recent.
//
// Within minInterval the last rate is shown again, and the older sample stays: two clients that ask at the same time do
// not spoil each other's rates. A counter that went back is another cgroup of that name.
func (c *Collector) cpu(what string, total uint64, waited *psi.Pressure, now time.Time,
	next map[string]sample) *statsapi.CPUStats {
	out := &statsapi.CPUStats{Time: metav1.NewTime(now), UsageCoreNanoSeconds: &total, PSI: pressure(waited)}
	before, ok := c.last[what]
	switch {
	case ok && now.Sub(before.at) < minInterval:
		next[what] = before
		out.UsageNanoCores = &before.rate
	case ok && total >= before.cpu:
		rate := uint64(float64(total-before.cpu) / now.Sub(before.at).Seconds())
		next[what] = sample{now, total, rate}
		out.UsageNanoCores = &rate
	default:
		next[what] = sample{at: now, cpu: total}
	}
	return out
}

func memory(u Usage, now time.Time) *statsapi.MemoryStats {
	m := &statsapi.MemoryStats{Time: metav1.NewTime(now), UsageBytes: &u.MemoryBytes,
		WorkingSetBytes: &u.WorkingSetBytes, RSSBytes: &u.RSSBytes, PageFaults: &u.PageFaults,
		MajorPageFaults: &u.MajorPageFaults, PSI: pressure(u.MemoryPressure)}
	if u.MemoryLimitBytes > 0 {
		m.AvailableBytes = &u.MemoryAvail
	}
	return m
}

// io is the pressure on the disks, nil if it is not known.
func io(u Usage, now time.Time) *statsapi.IOStats {
	if u.IOPressure == nil {
		return nil
	}
	return &statsapi.IOStats{Time: metav1.NewTime(now), PSI: pressure(u.IOPressure)}
}

// pressure shows a pressure. Its totals are the kernel's microseconds, as upstream shows them, whatever the API's
// comment says.
func pressure(p *psi.Pressure) *statsapi.PSIStats {
	if p == nil {
		return nil
	}
	of := func(s psi.Stall) statsapi.PSIData {
		return statsapi.PSIData{Total: s.Total, Avg10: s.Avg10, Avg60: s.Avg60, Avg300: s.Avg300}
	}
	return &statsapi.PSIStats{Full: of(p.Full), Some: of(p.Some)}
}

// swap is what is used and, where that is limited, what is left.
func swap(u Usage, now time.Time) *statsapi.SwapStats {
	s := &statsapi.SwapStats{Time: metav1.NewTime(now), SwapUsageBytes: &u.Swap}
	if u.SwapLimited {
		s.SwapAvailableBytes = &u.SwapAvail
	}
	return s
}

func fileSystem(dir string, now time.Time) *statsapi.FsStats {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return nil
	}
	size := uint64(st.Bsize)
	capacity, free, used := st.Blocks*size, st.Bavail*size, (st.Blocks-st.Bfree)*size
	inodes, inodesFree, inodesUsed := st.Files, st.Ffree, st.Files-st.Ffree
	return &statsapi.FsStats{Time: metav1.NewTime(now), CapacityBytes: &capacity, AvailableBytes: &free,
		UsedBytes: &used, Inodes: &inodes, InodesFree: &inodesFree, InodesUsed: &inodesUsed}
}
