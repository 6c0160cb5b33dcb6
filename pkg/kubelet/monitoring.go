package kubelet

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cadvisor"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/node"
	"bonsai/pkg/kubelet/podmanager"
	"bonsai/pkg/kubelet/stats"
)

// monitor measures the machine and the pods' cgroups for /metrics/cadvisor. Nothing is cached: Prometheus decides how
// often it is measured.
type monitor struct {
	cgroups *cgroup.Manager
	pods    *podmanager.Manager
	node    node.Machine
	rootDir string
	log     *slog.Logger
}

// handler serves /metrics/cadvisor from a registry of its own. A collector that fails in part still shows the rest.
func (m monitor) handler() (http.Handler, error) {
	c, err := cadvisor.New(cadvisor.Config{Groups: m.groups, Machine: m.machine, Pods: m.pods.Pods, Now: time.Now,
		Log: m.log})
	if err != nil {
		return nil, err
	}
	r := prometheus.NewRegistry()
	if err := r.Register(c); err != nil {
		return nil, err
	}
	// The registry is not the kubelet's own, which /metrics serves: figures of containers would make that large.
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelWarn),
		ErrorHandling: promhttp.ContinueOnError}), nil
}

// machine describes the node. What cannot be read is left at zero.
func (m monitor) machine() cadvisor.Machine {
	i, c := m.node.Info(), m.node.Capacity()
	d := cadvisor.Machine{ID: i.MachineID, SystemUUID: i.SystemUUID, BootID: i.BootID, Kernel: i.KernelVersion,
		OS: i.OSImage, MemoryBytes: uint64(c.Memory().Value())}
	cpus, _ := os.ReadFile("/proc/cpuinfo") // without it the machine shows no cores
	d.Cores, d.PhysicalCores, d.Sockets = cadvisor.Topology(string(cpus))
	var sys unix.Sysinfo_t
	if unix.Sysinfo(&sys) == nil {
		d.SwapBytes = uint64(sys.Totalswap) * uint64(sys.Unit)
	}
	return d
}

// groups reads the cgroups of all pods, and the machine as a whole under "/". Cgroups that vanish meanwhile are left
// out. Network figures are those of the sandbox, whose network namespace all containers of the pod share. A scrape
// reads the files of each cgroup, and the open files of all processes of the machine once.
func (m monitor) groups() ([]cadvisor.Group, error) {
	all, err := m.wholeNode()
	files := stats.NewFiles("/")
	pids := files.PIDs()
	all.Usage.Processes = uint64(len(pids))
	all.Usage.Files, all.Usage.Sockets = files.Open(pids)
	out := []cadvisor.Group{all}
	containers := map[string]bool{}
	alone := map[string]bool{} // pods with a network of their own
	for _, p := range m.pods.Pods() {
		for _, id := range stats.Running(p) {
			containers[id] = true
		}
		// Pods of the host's network would each show the machine's traffic again.
		alone[string(p.UID)] = !p.Spec.HostNetwork
	}
	groups := m.cgroups.Groups()
	isSandbox := sandboxes(groups, containers)
	for _, g := range groups {
		s, err := m.cgroups.Stats(g)
		if err != nil {
			continue
		}
		x := cadvisor.Group{ID: g.Path, Pod: g.Pod, Container: g.ID, Started: g.Made, Usage: usageOf(s)}
		x.Usage.Files, x.Usage.Sockets = files.Open(s.PIDs)
		// The limit is read from the first process; others of the container usually inherit it.
		if g.ID != "" && len(s.PIDs) > 0 {
			if soft, known := files.MayOpen(s.PIDs[0]); known {
				x.MaxFiles = &soft
			}
		}
		if isSandbox[g.ID] && alone[string(g.Pod)] {
			x.Network = interfacesOf(stats.Interfaces("/", m.cgroups.Process(g)))
		}
		out = append(out, x)
	}
	return out, err
}

// sandboxes returns the ids of the pods' sandboxes among the groups: for each pod, the oldest cgroup that belongs to no
// container in its status. There may be younger ones, because a status shows a container only after its postStart hook.
func sandboxes(groups []cgroup.Group, containers map[string]bool) map[string]bool {
	oldest := map[types.UID]cgroup.Group{}
	for _, g := range groups {
		if g.ID == "" || containers[g.ID] {
			continue
		}
		if o, there := oldest[g.Pod]; !there || g.Made.Before(o.Made) {
			oldest[g.Pod] = g
		}
	}
	out := map[string]bool{}
	for _, g := range oldest {
		out[g.ID] = true
	}
	return out
}

// It returns what it could measure, also with an error.
func (m monitor) wholeNode() (cadvisor.Group, error) {
	u, interfaces, err := stats.Node("/", m.cgroups.Version() == 2)
	g := cadvisor.Group{ID: "/", Network: interfacesOf(interfaces),
		Usage: cadvisor.Usage{CPU: u.CPUNanoseconds, Memory: u.MemoryBytes, WorkingSet: u.WorkingSetBytes,
			RSS: u.RSSBytes, PageFaults: u.PageFaults, MajorFaults: u.MajorPageFaults, MemoryLimit: u.MemoryLimitBytes,
			CPUPressure: u.CPUPressure, MemoryPressure: u.MemoryPressure, IOPressure: u.IOPressure}}
	g.Started = machineStarted()
	var fs unix.Statfs_t
	var st unix.Stat_t
	if e := errors.Join(unix.Statfs(m.rootDir, &fs), unix.Stat(m.rootDir, &st)); e != nil {
		return g, errors.Join(err, fmt.Errorf("measure the node's file system: %w", e))
	}
	size := uint64(fs.Bsize)
	g.Filesystems = []cadvisor.Filesystem{{Device: device(uint64(unix.Major(st.Dev)), uint64(unix.Minor(st.Dev))),
		Limit: fs.Blocks * size, Used: (fs.Blocks - fs.Bfree) * size, Inodes: fs.Files, InodesFree: fs.Ffree}}
	return g, err
}

// machineStarted returns when the machine started, zero if that is unknown.
func machineStarted() time.Time {
	var sys unix.Sysinfo_t
	if unix.Sysinfo(&sys) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(sys.Uptime) * time.Second)
}

// device returns the name of a disk ("/dev/sda"), or its numbers if it has none.
func device(major, minor uint64) string {
	numbers := cadvisor.DeviceName(major, minor)
	if to, err := os.Readlink("/sys/dev/block/" + numbers); err == nil {
		return "/dev/" + filepath.Base(to)
	}
	return numbers
}

func usageOf(s cgroup.Stats) cadvisor.Usage {
	u := cadvisor.Usage{CPU: s.CPUNanoseconds, User: s.User, System: s.System,
		ThrottledNanoseconds: s.ThrottledNanoseconds, Periods: s.Periods, Throttled: s.Throttled,
		Memory: s.MemoryBytes, WorkingSet: s.WorkingSetBytes, RSS: s.RSSBytes, Cache: s.Cache, Mapped: s.Mapped,
		Swap: s.Swap, Kernel: s.Kernel,
		ActiveFile: s.ActiveFile, InactiveFile: s.InactiveFile, MaxUsage: s.MaxUsage, FailCount: s.FailCount,
		PageFaults: s.PageFaults, MajorFaults: s.MajorPageFaults,
		OOMKills: s.OOMKills, Processes: s.Processes, Threads: s.Threads, MemoryLimit: s.MemoryLimitBytes,
		Reservation: s.Reservation, SwapLimit: s.SwapLimit,
		ThreadsMax: s.ThreadsMax, Shares: s.CPUShares, Quota: s.CPUQuota, Period: s.CPUPeriod,
		Reclaim: cadvisor.Reclaim(s.Reclaim), CPUPressure: s.CPUPressure, MemoryPressure: s.MemoryPressure,
		IOPressure: s.IOPressure}
	for _, d := range s.IO {
		u.Disks = append(u.Disks, cadvisor.Disk{Device: device(d.Major, d.Minor), ReadBytes: d.ReadBytes,
			WriteBytes: d.WriteBytes, Reads: d.Reads, Writes: d.Written})
	}
	return u
}

func interfacesOf(list []stats.Interface) []cadvisor.Interface {
	var out []cadvisor.Interface
	for _, i := range list {
		out = append(out, cadvisor.Interface(i))
	}
	return out
}
