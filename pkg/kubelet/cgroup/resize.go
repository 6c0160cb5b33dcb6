package cgroup

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Grow raises the limits of a pod's cgroup that are to become larger, and leaves those that are to become smaller: its
// containers must get their smaller ones before. The kernel charges containers against the pod's cgroup, too: with a
// smaller limit there first, a container could be killed or throttled before its own limit changes.
func (m *Manager) Grow(ctx context.Context, pod *corev1.Pod) error {
	path := m.path(pod)
	return m.change(ctx, path, m.cfg.forPod(pod).more(m.tree.limits(path)))
}

// Settle gives a pod's cgroup all its values. It refuses a memory limit below the pod's usage, which would kill it. The
// check and the write are two steps: the pod may grow in between, and the kernel then reclaims or kills.
func (m *Manager) Settle(ctx context.Context, pod *corev1.Pod) error {
	v := m.cfg.forPod(pod)
	if used, over := m.over(pod, v); over {
		return fmt.Errorf("attempting to set pod memory limit (%d) below current usage (%d)", v.memory, used)
	}
	return m.change(ctx, m.path(pod), v)
}

// MayLimit returns why a container, by the runtime's id, may not be limited to so many bytes of memory: it uses more.
// If its usage is unknown, it may.
func (m *Manager) MayLimit(pod *corev1.Pod, name, id string, memory int64) error {
	used, err := m.ContainerUsage(pod, id)
	if err != nil || memory <= 0 || used.MemoryBytes <= uint64(memory) {
		return nil
	}
	return fmt.Errorf("attempting to set container %q memory limit (%d) below current usage (%d)", name, memory,
		used.MemoryBytes)
}

// over reports whether the pod uses more memory than v would let it.
func (m *Manager) over(pod *corev1.Pod, v values) (used uint64, over bool) {
	usage, err := m.PodUsage(pod)
	return usage.MemoryBytes, err == nil && v.memory > 0 && usage.MemoryBytes > uint64(v.memory)
}

// more returns v without the limits that are not larger than what the cgroup has. A missing limit is larger than any.
// Quotas are compared by what they are of their periods. Zero in the result leaves the file as it is, see settings.
func (v values) more(has values) values {
	if has.cpuQuota <= 0 || v.cpuQuota > 0 && v.cpuQuota*has.period() < has.cpuQuota*v.period() {
		v.cpuQuota = 0
	}
	if has.memory <= 0 || v.memory < has.memory {
		v.memory = 0
	}
	return v
}

// limits returns the limits that a cgroup has; 0: none, or not readable.
func (t *tree) limits(cgroup string) values {
	var v values
	quota, memory := "cpu.cfs_quota_us", "memory.limit_in_bytes"
	if t.v2 {
		quota, memory = "cpu.max", "memory.max"
	}
	v.cpuQuota, v.cpuPeriod = t.limit("cpu", cgroup, quota), t.cpuPeriod(cgroup)
	if v.memory = t.limit("memory", cgroup, memory); v.memory >= noLimit {
		v.memory = 0
	}
	return v
}

// limit returns the first number of a file, 0 if the file does not begin with a limit.
func (t *tree) limit(controller, cgroup, file string) int64 {
	data, err := os.ReadFile(t.file(controller, cgroup, file))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// cpuPeriod returns the period that a cgroup's quota has, in µs; 0 if it cannot be read.
func (t *tree) cpuPeriod(cgroup string) int64 {
	if !t.v2 {
		return t.limit("cpu", cgroup, "cpu.cfs_period_us")
	}
	data, _ := os.ReadFile(t.file("cpu", cgroup, "cpu.max")) // the quota, and its period
	_, text, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
