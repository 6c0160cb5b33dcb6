package cri

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/memoryqos"
	"bonsai/pkg/kubelet/runtime"
)

// Shares of the CPU controller are relative to 1024 per core.
const (
	minShares = 2
	maxShares = 262_144
)

// Scores of the kernel's out-of-memory killer
// (https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/, "Node out of memory behavior").
const (
	oomGuaranteed = -997
	oomBestEffort = 1000
)

// shares converts thousandths of a CPU. minShares and maxShares are the kernel's own bounds.
func shares(milli int64) int64 {
	return min(max(milli*1024/1000, minShares), maxShares)
}

// limitCPU gives a limit in thousandths of a CPU, 0 for none, as a quota of each period.
func (c Containers) limitCPU(r *runtimeapi.LinuxContainerResources, milli int64) {
	if !c.CPU.Off {
		r.CpuPeriod, r.CpuQuota = c.CPU.Microseconds(), c.CPU.Of(milli)
	}
}

// resources are the limits of one container. The OOM score of a Burstable container falls with its share of the node's
// memory; a container may use the swap that its options give it, by default none.
func resources(q runtime.ContainerRequest, all Containers) *runtimeapi.LinuxContainerResources {
	pod, ct, node := q.Pod, q.Container, q.Node
	requests, limits := ct.Resources.Requests, ct.Resources.Limits
	bounds := runtime.Effective(pod, ct).Limits
	cpu := requests.Cpu().MilliValue()
	if _, ok := requests[corev1.ResourceCPU]; !ok {
		cpu = bounds.Cpu().MilliValue()
	}
	r := &runtimeapi.LinuxContainerResources{CpuShares: shares(cpu),
		MemoryLimitInBytes: bounds.Memory().Value(), OomScoreAdj: oomScore(pod, ct, node.Memory().Value()),
		HugepageLimits: hugepageLimits(limits, node), CpusetCpus: q.Options.CPUs, CpusetMems: q.Options.MemoryNodes}
	if !q.Options.NoCPUQuota {
		all.limitCPU(r, bounds.Cpu().MilliValue())
	}
	if all.CgroupV2 {
		r.Unified = map[string]string{"memory.oom.group": "1"}
		if all.SingleProcessOOMKill {
			r.Unified["memory.oom.group"] = "0"
		}
		all.qualify(r.Unified, pod.Status.QOSClass, requests.Memory().Value(), bounds.Memory().Value())
	}
	switch {
	case q.Options.LimitSwap && all.CgroupV2:
		r.Unified["memory.swap.max"] = strconv.FormatInt(q.Options.Swap, 10)
	// v1 gives no swap: memory and swap together; without a limit of memory there is none, and the pod's cgroup forbids
	// it
	case q.Options.LimitSwap:
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
	}
	return r
}

// The files of cgroup v2 that protect and throttle memory.
const (
	memoryMin  = "memory.min"
	memoryLow  = "memory.low"
	memoryHigh = "memory.high"
)

// qualify adds to the files of a container's cgroup those that protect and throttle its memory.
func (c Containers) qualify(unified map[string]string, class corev1.PodQOSClass, request, limit int64) {
	if c.Memory.Protect {
		p := c.Memory.Protection(class, request)
		unified[memoryMin], unified[memoryLow] = strconv.FormatInt(p.Min, 10), strconv.FormatInt(p.Low, 10)
	}
	switch high := c.Memory.High(class, request, limit); {
	case high == memoryqos.Unlimited:
		unified[memoryHigh] = "max"
	case high > 0:
		unified[memoryHigh] = strconv.FormatInt(high, 10)
	}
}

// oomScore follows the quality of service: 1000 for best effort, -997 for guaranteed and node-critical, between them
// for burstable. capacity is the node's memory in bytes, 0 if it is not known.
func oomScore(pod *corev1.Pod, ct *corev1.Container, capacity int64) int64 {
	if pod.Spec.Priority != nil && *pod.Spec.Priority >= runtime.SystemCriticalPriority &&
		pod.Spec.PriorityClassName == "system-node-critical" {
		return oomGuaranteed
	}
	switch pod.Status.QOSClass {
	case corev1.PodQOSGuaranteed:
		return oomGuaranteed
	case corev1.PodQOSBestEffort:
		return oomBestEffort
	}
	if capacity <= 0 {
		return oomBestEffort - 1
	}
	request := ct.Resources.Requests.Memory().Value()
	if slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == ct.Name && podspec.IsSidecar(&c)
	}) {
		request = max(request, leastRequest(pod.Spec.Containers)) // a sidecar does not die before those it serves
	}
	request += unclaimedMemory(pod)
	score := 1000 - 1000*request/capacity
	return min(max(score, 1000+oomGuaranteed), oomBestEffort-1)
}

// unclaimedMemory is each regular container's part, in bytes, of what the pod as a whole requests beyond its
// containers.
func unclaimedMemory(pod *corev1.Pod) int64 {
	if pod.Spec.Resources == nil || len(pod.Spec.Containers) == 0 {
		return 0
	}
	claimed := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	return max(pod.Spec.Resources.Requests.Memory().Value()-claimed.Memory().Value(),
		0) / int64(len(pod.Spec.Containers))
}

// leastRequest is the least memory that one of the containers requests, in bytes.
func leastRequest(list []corev1.Container) int64 {
	least := int64(0)
	for i := range list {
		if m := list[i].Resources.Requests.Memory().Value(); i == 0 || m < least {
			least = m
		}
	}
	return least
}

// updated are those of a container's resources that can change while it runs. Without a period, limits of CPU are not
// kept: the container may have one of an earlier kubelet, which ends.
func updated(r *runtimeapi.LinuxContainerResources) *runtimeapi.LinuxContainerResources {
	if r.CpuPeriod == 0 {
		r.CpuQuota = -1
	}
	out := &runtimeapi.LinuxContainerResources{CpuPeriod: r.CpuPeriod, CpuShares: r.CpuShares, CpuQuota: r.CpuQuota,
		MemoryLimitInBytes: r.MemoryLimitInBytes, MemorySwapLimitInBytes: r.MemorySwapLimitInBytes}
	for file, value := range r.Unified {
		if file == memoryMin || file == memoryLow || file == memoryHigh {
			if out.Unified == nil {
				out.Unified = map[string]string{}
			}
			out.Unified[file] = value
		}
	}
	return out
}

// told returns what the runtime reports about a container's cgroup, in thousandths of a CPU and in bytes; nil if it
// does not report it. Above their least values, shares and quotas convert back to the exact amounts that they were made
// from.
func told(r *runtimeapi.LinuxContainerResources) *runtime.ContainerResources {
	if r == nil {
		return nil
	}
	out := &runtime.ContainerResources{MilliCPURequest: (r.CpuShares*1000 + 1023) / 1024,
		MemoryLimit: max(r.MemoryLimitInBytes, 0)}
	if r.CpuPeriod > 0 && r.CpuQuota > 0 {
		out.MilliCPULimit = r.CpuQuota * 1000 / r.CpuPeriod
	}
	return out
}
