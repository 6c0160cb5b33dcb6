package cgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/psi"
)

// Usage is what the processes of a cgroup have used: CPU since the cgroup exists, everything else now.
type Usage struct {
	CPUNanoseconds                uint64
	MemoryBytes, WorkingSetBytes  uint64
	RSSBytes                      uint64
	PageFaults, MajorPageFaults   uint64
	Processes                     uint64
	MemoryLimitBytes, MemoryAvail uint64 // 0 without a limit
	Swap                          uint64 // bytes
	// SwapAvail is how much more swap there may be, in bytes; it has no meaning unless SwapLimited.
	SwapAvail   uint64
	SwapLimited bool
	// The pressures are nil if they are not known; cgroup v1 has none.
	CPUPressure, MemoryPressure, IOPressure *psi.Pressure
}

// PodUsage returns what the pod has used.
func (m *Manager) PodUsage(pod *corev1.Pod) (Usage, error) {
	if err := checkUID(pod.UID); err != nil {
		return Usage{}, err
	}
	return m.usage(m.path(pod))
}

// PodsUsage returns what all pods together have used.
func (m *Manager) PodsUsage() (Usage, error) { return m.usage(m.names.path("kubepods")) }

// ContainerUsage returns what a container of the pod has used; id is the runtime's, without "containerd://".
func (m *Manager) ContainerUsage(pod *corev1.Pod, id string) (Usage, error) {
	if strings.Contains(id, "/") || id == "" || id == ".." {
		return Usage{}, fmt.Errorf("container ID %q cannot name a cgroup", id)
	}
	return m.usage(m.names.container(m.path(pod), id))
}

// usage reads what a cgroup has used. It fails if the files of CPU or memory cannot be read, as when the cgroup is
// gone. The limits, the number of processes and swap are 0 if the kernel does not have them. The files are read one
// after the other, so the numbers may be from slightly different moments.
func (m *Manager) usage(cgroup string) (Usage, error) {
	if m.tree.v2 {
		return m.usageV2(cgroup)
	}
	var u Usage
	var err error
	if u.CPUNanoseconds, err = readNumber(m.tree.file("cpuacct", cgroup, "cpuacct.usage")); err != nil {
		return u, err
	}
	if u.MemoryBytes, err = readNumber(m.tree.file("memory", cgroup, "memory.usage_in_bytes")); err != nil {
		return u, err
	}
	limit, _ := readNumber(m.tree.file("memory", cgroup, "memory.limit_in_bytes"))
	u.Processes, _ = readNumber(m.tree.file("pids", cgroup, "pids.current"))
	stat, err := readFields(m.tree.file("memory", cgroup, "memory.stat"))
	if err != nil {
		return u, err
	}
	u.RSSBytes, u.PageFaults, u.MajorPageFaults, u.Swap = stat["total_rss"], stat["total_pgfault"],
		stat["total_pgmajfault"], stat["total_swap"]
	if n, err := readNumber(m.tree.file("memory", cgroup, "memory.swappiness")); err == nil && n == 0 {
		u.SwapLimited = true // pods have no swap with v1
	}
	return u.finish(stat["total_inactive_file"], limit), nil
}

// usageV2 is usage for cgroup v2.
func (m *Manager) usageV2(cgroup string) (Usage, error) {
	var u Usage
	cpu, err := readFields(m.tree.file("cpu", cgroup, "cpu.stat"))
	if err != nil {
		return u, err
	}
	u.CPUNanoseconds = cpu["usage_usec"] * 1000
	if u.MemoryBytes, err = readNumber(m.tree.file("memory", cgroup, "memory.current")); err != nil {
		return u, err
	}
	limit, _ := readNumber(m.tree.file("memory", cgroup, "memory.max")) // "max": no limit
	u.Processes, _ = readNumber(m.tree.file("pids", cgroup, "pids.current"))
	stat, err := readFields(m.tree.file("memory", cgroup, "memory.stat"))
	if err != nil {
		return u, err
	}
	u.RSSBytes, u.PageFaults, u.MajorPageFaults = stat["anon"], stat["pgfault"], stat["pgmajfault"]
	u.Swap = m.number("memory", cgroup, "memory.swap.current")
	if most, err := readNumber(m.tree.file("memory", cgroup, "memory.swap.max")); err == nil { // "max": no limit
		u.SwapLimited, u.SwapAvail = true, most-min(most, u.Swap)
	}
	u.CPUPressure, u.MemoryPressure, u.IOPressure = m.pressure("cpu", cgroup), m.pressure("memory", cgroup),
		m.pressure("io", cgroup)
	return u.finish(stat["inactive_file"], limit), nil
}

// pressure reads how long processes of a v2 cgroup have waited for a resource; nil if the kernel does not say (psi=0).
func (m *Manager) pressure(resource, cgroup string) *psi.Pressure {
	text, err := os.ReadFile(m.tree.file(resource, cgroup, resource+".pressure"))
	if err != nil {
		return nil
	}
	return psi.Parse(string(text))
}

// noLimit is where v1 shows "unlimited" as a very large number.
const noLimit = 1 << 60

// finish computes the working set as the kubelet defines it: memory without inactive file pages, which the kernel can
// take back at once. Evictions compare it with the limit.
func (u Usage) finish(inactive, limit uint64) Usage {
	u.WorkingSetBytes = u.MemoryBytes - min(inactive, u.MemoryBytes)
	if limit > 0 && limit < noLimit {
		u.MemoryLimitBytes = limit
		u.MemoryAvail = limit - min(limit, u.WorkingSetBytes)
	}
	return u
}

func readNumber(path string) (uint64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("read the usage of a cgroup: %w", err)
	}
	return strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
}

// readFields reads a file of lines with a name and a number each. It skips lines without a number.
func readFields(path string) (map[string]uint64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the usage of a cgroup: %w", err)
	}
	out := map[string]uint64{}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			out[name] = n
		}
	}
	return out, nil
}
