// Package numa reads from /sys which CPUs the machine has, and what they share: cores, caches, sockets, NUMA nodes with
// their memory.
//
// The files: https://docs.kernel.org/admin-guide/cputopology.html,
// https://docs.kernel.org/admin-guide/mm/numaperf.html.
package numa

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"bonsai/pkg/kubelet/cm"
)

// Read reads the machine below root, "/" for the present one. count is the number of CPUs if the system does not list
// them: each is then a core of its own. What the system does not report about a CPU is 0.
func Read(root string, count int) (cm.Machine, error) {
	dir := filepath.Join(root, "sys/devices/system")
	online, err := set(filepath.Join(dir, "cpu/online"))
	if err != nil {
		return cm.Machine{}, err
	}
	if online.IsEmpty() {
		all := make([]int, count)
		for i := range all {
			all[i] = i
		}
		online = cpuset.New(all...)
	}
	nodes, distances, err := readNodes(filepath.Join(dir, "node"))
	if err != nil {
		return cm.Machine{}, err
	}
	m := cm.Machine{Distances: distances}
	if m.Memory, err = readMemory(root); err != nil {
		return cm.Machine{}, err
	}
	for _, id := range online.List() {
		c := cm.CPU{ID: id, Core: id, NUMA: nodes[id]}
		at := filepath.Join(dir, "cpu", fmt.Sprintf("cpu%d", id))
		if c.Socket, err = number(filepath.Join(at, "topology/physical_package_id")); err != nil {
			return cm.Machine{}, err
		}
		if c.Core, err = first(filepath.Join(at, "topology/thread_siblings_list"), id); err != nil {
			return cm.Machine{}, err
		}
		if c.Cache, err = first(filepath.Join(at, "cache/index3/shared_cpu_list"), id); err != nil {
			return cm.Machine{}, err
		}
		m.CPUs = append(m.CPUs, c)
	}
	return m, nil
}

// readNodes tells the NUMA node of each CPU, and how far the nodes are from each other.
func readNodes(dir string) (of map[int]int, distances map[int]map[int]int, err error) {
	of, distances = map[int]int{}, map[int]map[int]int{}
	online, err := set(filepath.Join(dir, "online"))
	if err != nil {
		return nil, nil, err
	}
	ids := online.List()
	for _, id := range ids {
		at := filepath.Join(dir, fmt.Sprintf("node%d", id))
		cpus, err := set(filepath.Join(at, "cpulist"))
		if err != nil {
			return nil, nil, err
		}
		for _, cpu := range cpus.List() {
			of[cpu] = id
		}
		distances[id] = map[int]int{}
		for i, text := range strings.Fields(line(filepath.Join(at, "distance"))) {
			if i < len(ids) {
				if distances[id][ids[i]], err = strconv.Atoi(text); err != nil {
					return nil, nil, fmt.Errorf("read the distances of NUMA node %d: %w", id, err)
				}
			}
		}
	}
	return of, distances, nil
}

// line returns the content of a file, "" if it does not exist.
func line(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func set(path string) (cpuset.CPUSet, error) {
	s, err := cpuset.Parse(line(path))
	if err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("read %s: %w", path, err)
	}
	return s, nil
}

// first is the first number of a list in a file, otherwise if there is none.
func first(path string, otherwise int) (int, error) {
	s, err := set(path)
	if err != nil || s.IsEmpty() {
		return otherwise, err
	}
	return s.List()[0], nil
}

// number is the number in a file; 0 if it is not there, or negative, as where the system does not know it.
func number(path string) (int, error) {
	text := line(path)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	return max(n, 0), nil
}
