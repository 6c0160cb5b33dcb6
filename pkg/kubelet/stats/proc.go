package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/kubelet/psi"
)

// nodeReading is the content of /proc about the whole machine.
type nodeReading struct {
	cpu        uint64 // nanoseconds
	memory     Usage
	swapFree   uint64 // bytes
	interfaces []Interface
	primary    string // interface of the default route
}

// tick is the unit of /proc/stat: USER_HZ is 100 on every architecture Linux has today.
const tick = 10 * time.Millisecond

// readNode reads the use of the whole machine. CPU and memory are required. Everything else is left out if it cannot be
// read.
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
	swap := kilobytes(info)
	n.memory.Swap, n.swapFree = swap["SwapTotal"]-min(swap["SwapFree"], swap["SwapTotal"]), swap["SwapFree"]
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

// readPressures adds the pressures of the whole machine, as far as the kernel tells them.
func (u *Usage) readPressures(root string) {
	of := func(resource string) *psi.Pressure {
		text, err := os.ReadFile(filepath.Join(root, "proc/pressure", resource))
		if err != nil {
			return nil
		}
		return psi.Parse(string(text))
	}
	u.CPUPressure, u.MemoryPressure, u.IOPressure = of("cpu"), of("memory"), of("io")
}

// processes returns how many processes there are and may be; nil if that is unknown.
func processes(root string, now time.Time) *statsapi.RlimitStats {
	limit, err := os.ReadFile(filepath.Join(root, "proc/sys/kernel/pid_max"))
	if err != nil {
		return nil
	}
	// 0.20 0.18 0.12 1/80 11206: the fourth is of those that run, and all
	load, err := os.ReadFile(filepath.Join(root, "proc/loadavg"))
	if err != nil {
		return nil
	}
	most, err := strconv.ParseInt(strings.TrimSpace(string(limit)), 10, 64)
	if err != nil {
		return nil
	}
	f := strings.Fields(string(load))
	if len(f) < 4 {
		return nil
	}
	_, all, _ := strings.Cut(f[3], "/")
	n, err := strconv.ParseInt(all, 10, 64)
	if err != nil {
		return nil
	}
	return &statsapi.RlimitStats{Time: metav1.NewTime(now), MaxPID: &most, NumOfRunningProcesses: &n}
}

// nodeMemory is the machine's memory; what is available is all but the working set, as of a cgroup. The kernel can take
// inactive file pages back at once, so they do not count as used.
func nodeMemory(info string) Usage {
	f := kilobytes(info)
	used := f["MemTotal"] - min(f["MemFree"], f["MemTotal"])
	set := used - min(f["Inactive(file)"], used)
	return Usage{MemoryBytes: used, WorkingSetBytes: set, RSSBytes: f["AnonPages"], MemoryLimitBytes: f["MemTotal"],
		MemoryAvail: f["MemTotal"] - set}
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

// busy is the time all CPUs spent working, in nanoseconds: the first line of /proc/stat without idle and iowait. Guest
// time is part of user time.
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

// Interface is what came in and went out over a network interface: bytes and packets.
type Interface struct {
	Name                                    string
	RxBytes, RxPackets, RxErrors, RxDropped uint64
	TxBytes, TxPackets, TxErrors, TxDropped uint64
}

// Interfaces reads those of a process' network (its /proc/<pid>/net/dev); loopback is left out.
func Interfaces(root string, pid int) []Interface {
	dev, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "net", "dev"))
	if err != nil {
		return nil
	}
	return interfaces(string(dev))
}

// interfaces reads /proc/net/dev; loopback is left out. Fields 0 to 3 are received bytes, packets, errors and drops; 8
// to 11 are the same for what was sent.
func interfaces(dev string) []Interface {
	var out []Interface
	for line := range strings.Lines(dev) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		f := strings.Fields(rest)
		if !ok || len(f) < 16 || name == "lo" {
			continue
		}
		num := func(i int) uint64 {
			v, _ := strconv.ParseUint(f[i], 10, 64)
			return v
		}
		out = append(out, Interface{name, num(0), num(1), num(2), num(3), num(8), num(9), num(10), num(11)})
	}
	return out
}

// Node returns the use of the whole machine from /proc below root.
func Node(root string, pressures bool) (Usage, []Interface, error) {
	n, err := readNode(root)
	if pressures {
		n.memory.readPressures(root)
	}
	return n.memory.withCPU(n.cpu), n.interfaces, err
}

func (u Usage) withCPU(ns uint64) Usage {
	u.CPUNanoseconds = ns
	return u
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

// network returns the summary of interfaces, and of the primary one.
func network(list []Interface, primary string, now time.Time) *statsapi.NetworkStats {
	out := &statsapi.NetworkStats{Time: metav1.NewTime(now)}
	for i := range list {
		x := &list[i]
		one := statsapi.InterfaceStats{Name: x.Name, RxBytes: &x.RxBytes, RxErrors: &x.RxErrors, TxBytes: &x.TxBytes,
			TxErrors: &x.TxErrors}
		out.Interfaces = append(out.Interfaces, one)
		if x.Name == primary {
			out.InterfaceStats = one
		}
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
