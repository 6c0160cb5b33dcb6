package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// nodeReading is what /proc says of the whole machine.
type nodeReading struct {
	cpu        uint64 // nanoseconds
	memory     Usage
	interfaces []statsapi.InterfaceStats
	primary    string // interface of the default route
}

// tick is the unit of /proc/stat: USER_HZ is 100 on every architecture Linux has today.
const tick = 10 * time.Millisecond

func readNode(root string) (nodeReading, error) {
	var n nodeReading
	read := func(name string) (string, error) {
		data, err := os.ReadFile(filepath.Join(root, "proc", name))
		if err != nil {
			return "", fmt.Errorf("read the node's use: %w", err)
		}
		return string(data), nil
	}
	stat, err := read("stat")
	if err != nil {
		return n, err
	}
	n.cpu = busy(stat)
	info, err := read("meminfo")
	if err != nil {
		return n, err
	}
	n.memory = nodeMemory(info)
	if vm, err := read("vmstat"); err == nil {
		v := fields(vm)
		n.memory.PageFaults, n.memory.MajorPageFaults = v["pgfault"], v["pgmajfault"]
	}
	if dev, err := read("net/dev"); err == nil {
		n.interfaces = interfaces(dev)
	}
	if route, err := read("net/route"); err == nil {
		n.primary = defaultInterface(route)
	}
	return n, nil
}

// nodeMemory is the machine's memory; what is available is all but the working set, as of a cgroup.
func nodeMemory(info string) Usage {
	f := kilobytes(info)
	used := f["MemTotal"] - min(f["MemFree"], f["MemTotal"])
	set := used - min(f["Inactive(file)"], used)
	return Usage{MemoryBytes: used, WorkingSetBytes: set, RSSBytes: f["AnonPages"], MemoryLimitBytes: f["MemTotal"], MemoryAvail: f["MemTotal"] - set}
}

// Memory is the machine's memory and its working set, in bytes; root is where /proc is found.
func Memory(root string) (capacity, used int64, err error) {
	info, err := os.ReadFile(filepath.Join(root, "proc", "meminfo"))
	if err != nil {
		return 0, 0, fmt.Errorf("read the node's use: %w", err)
	}
	m := nodeMemory(string(info))
	return int64(m.MemoryLimitBytes), int64(m.WorkingSetBytes), nil
}

// busy is the time all CPUs spent working, in nanoseconds: the first line of /proc/stat without idle and iowait. Guest time is
// part of user time.
func busy(stat string) uint64 {
	line, _, _ := strings.Cut(stat, "\n")
	var ticks uint64
	for i, s := range strings.Fields(line) {
		if i == 0 || i == 4 || i == 5 || i > 8 {
			continue
		}
		v, _ := strconv.ParseUint(s, 10, 64)
		ticks += v
	}
	return ticks * uint64(tick)
}

// kilobytes reads /proc/meminfo into bytes.
func kilobytes(text string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 {
			v, _ := strconv.ParseUint(f[1], 10, 64)
			out[strings.TrimSuffix(f[0], ":")] = v * 1024
		}
	}
	return out
}

func fields(text string) map[string]uint64 {
	out := map[string]uint64{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 {
			out[f[0]], _ = strconv.ParseUint(f[1], 10, 64)
		}
	}
	return out
}

// interfaces reads /proc/net/dev; loopback is left out.
func interfaces(dev string) []statsapi.InterfaceStats {
	var out []statsapi.InterfaceStats
	for line := range strings.Lines(dev) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(rest)
		if !ok || len(f) < 16 || name == "lo" {
			continue
		}
		num := func(i int) *uint64 {
			v, _ := strconv.ParseUint(f[i], 10, 64)
			return &v
		}
		out = append(out, statsapi.InterfaceStats{Name: name, RxBytes: num(0), RxErrors: num(2), TxBytes: num(8), TxErrors: num(10)})
	}
	return out
}

// defaultInterface is the interface of the default route in /proc/net/route.
func defaultInterface(route string) string {
	for line := range strings.Lines(route) {
		if f := strings.Fields(line); len(f) > 7 && f[1] == "00000000" && f[7] == "00000000" {
			return f[0]
		}
	}
	return ""
}

func (n nodeReading) network(now time.Time) *statsapi.NetworkStats {
	out := &statsapi.NetworkStats{Time: metav1.NewTime(now), Interfaces: n.interfaces}
	if i := slices.IndexFunc(n.interfaces, func(s statsapi.InterfaceStats) bool { return s.Name == n.primary }); i >= 0 {
		out.InterfaceStats = n.interfaces[i]
	}
	return out
}

// runtimeID strips the scheme: containerd://<id>.
func runtimeID(id string) string {
	if _, bare, ok := strings.Cut(id, "://"); ok {
		return bare
	}
	return id
}
