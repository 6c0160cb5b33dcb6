package cgroup

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/memoryqos"
	"bonsai/pkg/kubelet/runtime"
)

// Bounds and the usual period of the kernel's CPU controller.
const (
	minShares   = 2
	maxShares   = 262144
	usualPeriod = 100000 // µs
)

// values are the settings of one cgroup in the terms of cgroup v1. Zero leaves a setting as it is.
type values struct {
	cpuShares uint64
	cpuQuota  int64 // µs of CPU time per period; -1 removes the limit
	cpuPeriod int64 // µs; 0 is the usual one
	memory    int64 // bytes; -1 removes the limit
	// noSwap forbids swap; swap is how much of it there may be, in bytes, with cgroup v2.
	noSwap bool
	swap   int64
	pids   int64
	// protected is the memory that the kernel does not take away, and high, in bytes, that from which the cgroup is
	// throttled; memoryqos.Unlimited: never. Both need cgroup v2; nil and 0 leave them as they are.
	protected *memoryqos.Protection
	high      int64
	// hugePages are the bytes of huge pages by their size as the kernel writes it ("2MB"); 0 of the sizes that are not
	// listed, but nil leaves all as they are.
	hugePages map[string]int64
}

// forPod returns the settings of the pod's cgroup: CPU shares by its requests. It has a quota and a memory limit only
// if every container has that limit, because otherwise a container without one would be held to those of the others.
// Swap is the sum of what its containers may use. The node's limit of processes holds for each pod.
func (c *Config) forPod(pod *corev1.Pod) values {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	limits := resource.PodLimits(pod, resource.PodResourcesOptions{})
	cpuLimited, memoryLimited := true, true
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		cpuLimited = cpuLimited && !c.Resources.Limits.Cpu().IsZero()
		memoryLimited = memoryLimited && !c.Resources.Limits.Memory().IsZero()
	}
	if resource.IsPodLevelLimitsSet(pod) {
		own := pod.Spec.Resources.Limits
		cpuLimited = cpuLimited || !own.Cpu().IsZero()
		memoryLimited = memoryLimited || !own.Memory().IsZero()
	}
	v := values{cpuShares: cpuShares(requests.Cpu().MilliValue()), cpuQuota: -1, cpuPeriod: c.CPU.Microseconds(),
		swap: c.Swap.podLimit(pod), pids: c.PodPidsLimit, hugePages: hugePages(requests)}
	v.noSwap = v.swap == 0
	if runtime.QOSClass(pod) == corev1.PodQOSBestEffort {
		v.cpuShares = minShares
	}
	if quota := c.CPU.Of(limits.Cpu().MilliValue()); cpuLimited && quota > 0 && (c.NoQuota == nil || !c.NoQuota(pod)) {
		v.cpuQuota = quota
	}
	if memoryLimited {
		v.memory = limits.Memory().Value()
	}
	c.qualify(&v, pod, requests.Memory().Value())
	return v
}

// qualify adds how the pod's memory is protected and throttled. Only a pod with a limit of its own is throttled as a
// whole: else one container that uses much would hold up the others.
func (c *Config) qualify(v *values, pod *corev1.Pod, request int64) {
	class := runtime.QOSClass(pod)
	p := c.Memory.Protection(class, request)
	v.protected, v.high = &p, memoryqos.Unlimited
	if pod.Spec.Resources == nil || pod.Spec.Resources.Limits.Memory().IsZero() {
		return
	}
	if high := c.Memory.High(class, request, pod.Spec.Resources.Limits.Memory().Value()); high > 0 {
		v.high = high
	}
}

// hugePages returns the huge pages of a list by the kernel's names of their sizes.
func hugePages(l corev1.ResourceList) map[string]int64 {
	out := map[string]int64{}
	for name, q := range l {
		if size, is := strings.CutPrefix(string(name), corev1.ResourceHugePagesPrefix); is {
			out[strings.TrimSuffix(size, "i")+"B"] = q.Value()
		}
	}
	return out
}

// forList returns the settings of a cgroup with those limits of CPU, memory and processes; 0 is no limit.
func forList(l corev1.ResourceList) values {
	pids := l["pid"]
	v := values{memory: l.Memory().Value(), pids: pids.Value()}
	if cpu := l.Cpu().MilliValue(); cpu > 0 {
		v.cpuShares = cpuShares(cpu)
	}
	return v
}

// forBurstable returns the CPU shares of the cgroup of all burstable pods: the sum of their requests.
func forBurstable(pods []*corev1.Pod) values {
	var milli int64
	for _, p := range pods {
		if runtime.QOSClass(p) == corev1.PodQOSBurstable && counts(p) {
			requests := resource.PodRequests(p, resource.PodResourcesOptions{})
			milli += requests.Cpu().MilliValue()
		}
	}
	return values{cpuShares: cpuShares(milli)}
}

// protection returns the memory that pods request together, as far as it is protected: that of guaranteed pods as Min,
// that of burstable pods as Low.
func (c *Config) protection(pods []*corev1.Pod) (sum memoryqos.Protection) {
	for _, p := range pods {
		if c.Memory.Protect && counts(p) {
			requests := resource.PodRequests(p, resource.PodResourcesOptions{})
			one := c.Memory.Protection(runtime.QOSClass(p), requests.Memory().Value())
			sum.Min, sum.Low = sum.Min+one.Min, sum.Low+one.Low
		}
	}
	return sum
}

// counts reports whether a pod has not ended, and so counts for its class.
func counts(p *corev1.Pod) bool {
	return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// cpuShares converts thousandths of a CPU into cpu.shares: 1024 for one CPU, at least 2.
func cpuShares(milli int64) uint64 {
	return uint64(min(max(milli*1024/1000, minShares), maxShares))
}

// period returns the period of the quota, in µs.
func (v values) period() int64 { return cmp.Or(v.cpuPeriod, usualPeriod) }

// weight converts cpu.shares into cgroup v2's cpu.weight (1 to 10000), on the curve through (2, 1), (1024, 100) and
// (262144, 10000) that OCI runtimes use: a pod and its containers must be weighed alike.
func weight(shares uint64) uint64 {
	switch {
	case shares == 0:
		return 0
	case shares <= minShares:
		return 1
	case shares >= maxShares:
		return 10000
	}
	l := math.Log2(float64(shares))
	return uint64(math.Ceil(math.Pow(10, (l*l+125*l)/612-7.0/34)))
}
