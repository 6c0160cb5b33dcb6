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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cadvisor"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/stats"
)

// cadvisorMetrics answers /metrics/cadvisor.
func (k *Kubelet) cadvisorMetrics() (http.Handler, error) {
	c, err := cadvisor.New(cadvisor.Config{Groups: k.groups, Machine: k.machine, Pods: k.pods.Pods, Now: time.Now, Log: k.cfg.Log})
	if err != nil {
		return nil, err
	}
	r := prometheus.NewRegistry()
	if err := r.Register(c); err != nil {
		return nil, err
	}
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorLog: slog.NewLogLogger(k.cfg.Log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError}), nil
}

// machine is what the node is.
func (k *Kubelet) machine() cadvisor.Machine {
	i, c := k.cfg.Node.Machine.Info(), k.cfg.Node.Machine.Capacity()
	m := cadvisor.Machine{ID: i.MachineID, SystemUUID: i.SystemUUID, BootID: i.BootID, Kernel: i.KernelVersion, OS: i.OSImage, MemoryBytes: uint64(c.Memory().Value())}
	cpus, _ := os.ReadFile("/proc/cpuinfo") // not to be read: the machine tells of no cores
	m.Cores, m.PhysicalCores, m.Sockets = cadvisor.Topology(string(cpus))
	var sys unix.Sysinfo_t
	if unix.Sysinfo(&sys) == nil {
		m.SwapBytes = uint64(sys.Totalswap) * uint64(sys.Unit)
	}
	return m
}

// groups reads all cgroups of pods, and the machine as a whole. What ends meanwhile is left out.
func (k *Kubelet) groups() ([]cadvisor.Group, error) {
	all, err := k.wholeNode()
	files := stats.NewFiles("/")
	pids := files.PIDs()
	all.Usage.Processes = uint64(len(pids))
	all.Usage.Files, all.Usage.Sockets = files.Open(pids)
	out := []cadvisor.Group{all}
	containers := map[string]bool{}
	alone := map[string]bool{} // pods with a network of their own
	for _, p := range k.pods.Pods() {
		for _, id := range stats.Running(p) {
			containers[id] = true
		}
		alone[string(p.UID)] = !p.Spec.HostNetwork
	}
	groups := k.cgroups.Groups()
	isSandbox := sandboxes(groups, containers)
	for _, g := range groups {
		s, err := k.cgroups.Stats(g)
		if err != nil {
			continue
		}
		x := cadvisor.Group{ID: g.Path, Pod: g.Pod, Container: g.ID, Started: g.Made, Usage: usageOf(s)}
		x.Usage.Files, x.Usage.Sockets = files.Open(s.PIDs)
		if g.ID != "" && len(s.PIDs) > 0 {
			if soft, known := files.MayOpen(s.PIDs[0]); known {
				x.MaxFiles = &soft
			}
		}
		if isSandbox[g.ID] && alone[string(g.Pod)] {
			x.Network = interfacesOf(stats.Interfaces("/", k.cgroups.Process(g)))
		}
		out = append(out, x)
	}
	return out, err
}

// sandboxes are the ids of the pods' sandboxes among the groups: each the oldest that is no container of which the pod's status tells. There may be more,
// for a status tells of a container once its postStart hook has ended.
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

func (k *Kubelet) wholeNode() (cadvisor.Group, error) {
	u, interfaces, err := stats.Node("/")
	g := cadvisor.Group{ID: "/", Network: interfacesOf(interfaces), Usage: cadvisor.Usage{CPU: u.CPUNanoseconds, Memory: u.MemoryBytes, WorkingSet: u.WorkingSetBytes,
		RSS: u.RSSBytes, PageFaults: u.PageFaults, MajorFaults: u.MajorPageFaults, MemoryLimit: u.MemoryLimitBytes}}
	g.Started = machineStarted()
	var fs unix.Statfs_t
	var st unix.Stat_t
	if e := errors.Join(unix.Statfs(k.cfg.RootDir, &fs), unix.Stat(k.cfg.RootDir, &st)); e != nil {
		return g, errors.Join(err, fmt.Errorf("measure the node's file system: %w", e))
	}
	size := uint64(fs.Bsize)
	g.Filesystems = []cadvisor.Filesystem{{Device: device(uint64(unix.Major(st.Dev)), uint64(unix.Minor(st.Dev))), Limit: fs.Blocks * size, Used: (fs.Blocks - fs.Bfree) * size, Inodes: fs.Files, InodesFree: fs.Ffree}}
	return g, err
}

// machineStarted is when the machine did; zero if it does not say.
func machineStarted() time.Time {
	var sys unix.Sysinfo_t
	if unix.Sysinfo(&sys) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(sys.Uptime) * time.Second)
}

// device is the name of a disk: "/dev/sda", or its numbers if it has none.
func device(major, minor uint64) string {
	numbers := cadvisor.DeviceName(major, minor)
	if to, err := os.Readlink("/sys/dev/block/" + numbers); err == nil {
		return "/dev/" + filepath.Base(to)
	}
	return numbers
}

func usageOf(s cgroup.Stats) cadvisor.Usage {
	u := cadvisor.Usage{CPU: s.CPUNanoseconds, User: s.User, System: s.System, ThrottledNanoseconds: s.ThrottledNanoseconds, Periods: s.Periods, Throttled: s.Throttled,
		Memory: s.MemoryBytes, WorkingSet: s.WorkingSetBytes, RSS: s.RSSBytes, Cache: s.Cache, Mapped: s.Mapped, Swap: s.Swap, Kernel: s.Kernel,
		ActiveFile: s.ActiveFile, InactiveFile: s.InactiveFile, MaxUsage: s.MaxUsage, FailCount: s.FailCount, PageFaults: s.PageFaults, MajorFaults: s.MajorPageFaults,
		OOMKills: s.OOMKills, Processes: s.Processes, Threads: s.Threads, MemoryLimit: s.MemoryLimitBytes, Reservation: s.Reservation, SwapLimit: s.SwapLimit,
		ThreadsMax: s.ThreadsMax, Shares: s.CPUShares, Quota: s.CPUQuota, Period: s.CPUPeriod}
	for _, d := range s.IO {
		u.Disks = append(u.Disks, cadvisor.Disk{Device: device(d.Major, d.Minor), ReadBytes: d.ReadBytes, WriteBytes: d.WriteBytes, Reads: d.Reads, Writes: d.Written})
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

// podNetwork are the interfaces of a pod that has a network of its own.
func (k *Kubelet) podNetwork(pod *corev1.Pod) []stats.Interface {
	if pod.Spec.HostNetwork {
		return nil
	}
	pid := k.cgroups.PodProcess(pod)
	if pid == 0 {
		return nil
	}
	return stats.Interfaces("/", pid)
}
