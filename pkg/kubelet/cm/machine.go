package cm

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/cpuset"
)

// CPU is one of the machine's CPUs, under the system's numbers.
type CPU struct {
	ID int
	// Core is the lowest number of the CPUs that are threads of the same core, Cache of those that share the last-level
	// cache.
	Core, Cache int
	Socket      int
	NUMA        int
}

// Machine is the part of the hardware that decides what is near to what.
type Machine struct {
	// CPUs are those that are online, sorted.
	CPUs []CPU
	// Distances[a][b] is how far NUMA node b is from a.
	Distances map[int]map[int]int
	// Memory has the bytes of memory of each NUMA node, huge pages included, and of huge pages by their size.
	Memory map[int]map[corev1.ResourceName]uint64
}

// Nodes are the NUMA nodes that have CPUs.
func (m Machine) Nodes() (n Nodes) {
	for _, c := range m.CPUs {
		n |= NodesOf(c.NUMA)
	}
	return n
}

// Set returns the CPUs for which f is true.
func (m Machine) Set(f func(CPU) bool) cpuset.CPUSet {
	var ids []int
	for _, c := range m.CPUs {
		if f(c) {
			ids = append(ids, c.ID)
		}
	}
	return cpuset.New(ids...)
}

// On returns the CPUs of these NUMA nodes.
func (m Machine) On(n Nodes) cpuset.CPUSet { return m.Set(func(c CPU) bool { return n.Has(c.NUMA) }) }

// PerCore returns how many threads a core has, at most.
func (m Machine) PerCore() int {
	n := map[int]int{}
	for _, c := range m.CPUs {
		n[c.Core]++
	}
	most := 1
	for _, threads := range n {
		most = max(most, threads)
	}
	return most
}

// Group returns the CPUs with the same value of by, each group sorted, in the order of their first CPUs.
func (m Machine) Group(of cpuset.CPUSet, by func(CPU) int) []cpuset.CPUSet {
	ids, order := map[int][]int{}, []int{}
	for _, c := range m.CPUs {
		if !of.Contains(c.ID) {
			continue
		}
		if k := by(c); !slices.Contains(order, k) {
			order = append(order, k)
		}
		ids[by(c)] = append(ids[by(c)], c.ID)
	}
	out := make([]cpuset.CPUSet, 0, len(order))
	for _, k := range order {
		out = append(out, cpuset.New(ids[k]...))
	}
	return out
}
