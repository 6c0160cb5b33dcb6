// Package cadvisor tells what pods, their containers and the machine use under the metric names and labels that
// cAdvisor gave them (/metrics/cadvisor), which dashboards and autoscalers read. It reads cgroups and /proc itself. The
// names and labels: https://github.com/google/cadvisor/blob/master/docs/storage/prometheus.md.
package cadvisor

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/psi"
	"bonsai/pkg/kubelet/runtime"
)

// Usage is what the processes of a cgroup have used and may use. Bytes, nanoseconds and counts; 0 is none, or not
// known.
type Usage struct {
	CPU, User, System, ThrottledNanoseconds, Periods, Throttled            uint64
	Memory, WorkingSet, RSS, Cache, Mapped, Swap, Kernel                   uint64
	ActiveFile, InactiveFile, MaxUsage, FailCount, PageFaults, MajorFaults uint64
	OOMKills, Processes, Threads, Files, Sockets                           uint64
	MemoryLimit, Reservation, SwapLimit, ThreadsMax, Shares, Quota, Period uint64
	Reclaim
	Disks []Disk
	// The pressures are nil if they are not known.
	CPUPressure, MemoryPressure, IOPressure *psi.Pressure
}

// Reclaim is how the kernel takes memory back; all 0 with cgroup v1.
type Reclaim struct {
	// PagesScanned and PagesTaken are pages that the kernel looked at to take them back, and those that it took.
	PagesScanned, PagesTaken uint64
	// RefaultsAnon and RefaultsFile are pages that were needed again after they had been taken.
	RefaultsAnon, RefaultsFile uint64
	// DirtyFile and WritebackFile are bytes of files that are to be written to disk, and that are being written.
	DirtyFile, WritebackFile uint64
	// AboveHigh and AtMax are how often the cgroup was throttled for its memory, and how often it was at its limit.
	AboveHigh, AtMax uint64
}

// Disk is what was read from and written to a disk.
type Disk struct {
	Device                               string
	ReadBytes, WriteBytes, Reads, Writes uint64
}

// Filesystem is a file system of the node.
type Filesystem struct {
	Device                          string
	Limit, Used, Inodes, InodesFree uint64
}

// Interface is what came and went over a network interface.
type Interface struct {
	Name                                    string
	RxBytes, RxPackets, RxErrors, RxDropped uint64
	TxBytes, TxPackets, TxErrors, TxDropped uint64
}

// Group is a cgroup: the whole machine's ("/"), one that holds pods, a pod's, a container's or a sandbox's.
type Group struct {
	// ID is its path; Pod whose it is, "" for those of more than one; Container the runtime's id of what is in it, ""
	// for a pod's own.
	ID        string
	Pod       types.UID
	Container string
	Started   time.Time
	Usage     Usage
	// MaxFiles is how many files the first process of a container may have open, -1 for any number; nil: there is none,
	// or it does not say.
	MaxFiles *int64
	// Network are the interfaces of the pod's network; only of its sandbox, and the machine's of the node's.
	Network     []Interface
	Filesystems []Filesystem
}

// Machine is what the node is.
type Machine struct {
	ID, SystemUUID, BootID, Kernel, OS string
	Cores, PhysicalCores, Sockets      int
	MemoryBytes, SwapBytes             uint64
}

// Config is what a Collector needs. Everything is required.
type Config struct {
	// Groups reads all cgroups there are.
	Groups  func() ([]Group, error)
	Machine func() Machine
	// Pods are the node's pods, with statuses.
	Pods func() []*corev1.Pod
	Now  func() time.Time
	Log  *slog.Logger
}

// Collector tells Prometheus. It keeps nothing.
type Collector struct{ cfg Config }

var _ prometheus.Collector = (*Collector)(nil)

// New checks the configuration.
func New(cfg Config) (*Collector, error) {
	if cfg.Groups == nil || cfg.Machine == nil || cfg.Pods == nil || cfg.Now == nil || cfg.Log == nil {
		return nil, errors.New("cadvisor: the whole configuration is required")
	}
	return &Collector{cfg}, nil
}

// Describe implements prometheus.Collector: what there is depends on what runs.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// owner has the labels that say whose cgroup it is.
type owner struct{ container, image, name, namespace, pod string }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	groups, err := c.cfg.Groups()
	failed := 0.0
	if err != nil {
		failed = 1
		c.cfg.Log.Warn("not all cgroups read for /metrics/cadvisor", "err", err)
	}
	gauge(ch, "container_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", failed)
	c.machine(ch)
	pods := map[types.UID]*corev1.Pod{}
	for _, p := range c.cfg.Pods() {
		pods[p.UID] = p
	}
	now := c.cfg.Now()
	for i := range groups {
		emit(ch, &groups[i], ownerOf(pods[groups[i].Pod], groups[i].Container), now)
	}
}

// ownerOf finds whose a cgroup is. One of a pod that is in no status of its containers is its sandbox.
func ownerOf(pod *corev1.Pod, id string) owner {
	if pod == nil {
		return owner{name: id}
	}
	o := owner{name: id, namespace: pod.Namespace, pod: pod.Name}
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			if x, err := runtime.ParseContainerID(s.ContainerID); err == nil && id != "" && x.ID == id {
				o.container, o.image = s.Name, s.Image
			}
		}
	}
	return o
}

func gauge(ch chan<- prometheus.Metric, name, help string, v float64, labels ...string) {
	var names, values []string
	for i := 0; i+1 < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	ch <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), prometheus.GaugeValue, v, values...)
}

func (c *Collector) machine(ch chan<- prometheus.Metric) {
	m := c.cfg.Machine()
	gauge(ch, "cadvisor_version_info",
		"A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version & cadvisor revision.", 1,
		"cadvisorRevision", "", "cadvisorVersion", "", "dockerVersion", "", "kernelVersion", m.Kernel, "osVersion",
		m.OS)
	for _, g := range []struct {
		name, help string
		v          float64
	}{
		{"machine_cpu_cores", "Number of logical CPU cores.", float64(m.Cores)},
		{"machine_cpu_physical_cores", "Number of physical CPU cores.", float64(m.PhysicalCores)},
		{"machine_cpu_sockets", "Number of CPU sockets.", float64(m.Sockets)},
		{"machine_memory_bytes", "Amount of memory installed on the machine.", float64(m.MemoryBytes)},
		{"machine_swap_bytes", "Amount of swap memory available on the machine.", float64(m.SwapBytes)},
	} {
		gauge(ch, g.name, g.help, g.v, "boot_id", m.BootID, "machine_id", m.ID, "system_uuid", m.SystemUUID)
	}
	gauge(ch, "machine_scrape_error", "1 if there was an error while getting machine metrics, 0 otherwise.", 0)
}

// series is one metric of a group: its value, and its labels besides the common ones, name after name.
type series struct {
	name, help string
	kind       prometheus.ValueType
	value      float64
	labels     []string
}

const (
	gaugeKind   = prometheus.GaugeValue
	counterKind = prometheus.CounterValue
)

func emit(ch chan<- prometheus.Metric, g *Group, o owner, now time.Time) {
	for _, s := range slicesOf(g, now) {
		names, values := []string{"container", "id", "image", "name", "namespace", "pod"},
			[]string{o.container, g.ID, o.image, o.name, o.namespace, o.pod}
		for i := 0; i+1 < len(s.labels); i += 2 {
			names, values = append(names, s.labels[i]), append(values, s.labels[i+1])
		}
		m, err := prometheus.NewConstMetric(prometheus.NewDesc(s.name, s.help, names, nil), s.kind, s.value, values...)
		if err != nil {
			ch <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), fmt.Errorf("metric %s: %w", s.name, err))
			continue
		}
		ch <- prometheus.NewMetricWithTimestamp(now, m)
	}
}

func slicesOf(g *Group, now time.Time) []series {
	out := append(cpuSeries(&g.Usage), memorySeries(&g.Usage)...)
	out = append(out, specSeries(g, now)...)
	out = append(out, reclaimSeries(&g.Usage.Reclaim)...)
	out = append(out, pressureSeries(&g.Usage)...)
	for _, d := range g.Usage.Disks {
		out = append(out,
			series{"container_fs_reads_bytes_total", "Cumulative count of bytes read", counterKind,
				float64(d.ReadBytes), []string{"device", d.Device}},
			series{"container_fs_reads_total", "Cumulative count of reads completed", counterKind, float64(d.Reads),
				[]string{"device", d.Device}},
			series{"container_fs_writes_bytes_total", "Cumulative count of bytes written", counterKind,
				float64(d.WriteBytes), []string{"device", d.Device}},
			series{"container_fs_writes_total", "Cumulative count of writes completed", counterKind, float64(d.Writes),
				[]string{"device", d.Device}})
	}
	for _, f := range g.Filesystems {
		out = append(out,
			series{"container_fs_inodes_free", "Number of available Inodes", gaugeKind, float64(f.InodesFree),
				[]string{"device", f.Device}},
			series{"container_fs_inodes_total", "Number of Inodes", gaugeKind, float64(f.Inodes),
				[]string{"device", f.Device}},
			series{"container_fs_limit_bytes",
				"Number of bytes that can be consumed by the container on this filesystem.", gaugeKind,
				float64(f.Limit), []string{"device", f.Device}},
			series{"container_fs_usage_bytes", "Number of bytes that are consumed by the container on this filesystem.",
				gaugeKind, float64(f.Used), []string{"device", f.Device}})
	}
	for _, i := range g.Network {
		l := []string{"interface", i.Name}
		out = append(out,
			series{"container_network_receive_bytes_total", "Cumulative count of bytes received", counterKind,
				float64(i.RxBytes), l},
			series{"container_network_receive_errors_total", "Cumulative count of errors encountered while receiving",
				counterKind, float64(i.RxErrors), l},
			series{"container_network_receive_packets_dropped_total",
				"Cumulative count of packets dropped while receiving", counterKind, float64(i.RxDropped), l},
			series{"container_network_receive_packets_total", "Cumulative count of packets received", counterKind,
				float64(i.RxPackets), l},
			series{"container_network_transmit_bytes_total", "Cumulative count of bytes transmitted", counterKind,
				float64(i.TxBytes), l},
			series{"container_network_transmit_errors_total",
				"Cumulative count of errors encountered while transmitting", counterKind, float64(i.TxErrors), l},
			series{"container_network_transmit_packets_dropped_total",
				"Cumulative count of packets dropped while transmitting", counterKind, float64(i.TxDropped), l},
			series{"container_network_transmit_packets_total", "Cumulative count of packets transmitted", counterKind,
				float64(i.TxPackets), l})
	}
	return out
}

func seconds(ns uint64) float64 { return float64(ns) / 1e9 }

func cpuSeries(u *Usage) []series {
	out := []series{
		{"container_cpu_usage_seconds_total", "Cumulative cpu time consumed in seconds.", counterKind, seconds(u.CPU),
			[]string{"cpu", "total"}},
		{"container_cpu_user_seconds_total", "Cumulative user cpu time consumed in seconds.", counterKind,
			seconds(u.User), nil},
		{"container_cpu_system_seconds_total", "Cumulative system cpu time consumed in seconds.", counterKind,
			seconds(u.System), nil},
	}
	if u.Quota > 0 {
		out = append(out,
			series{"container_cpu_cfs_periods_total", "Number of elapsed enforcement period intervals.", counterKind,
				float64(u.Periods), nil},
			series{"container_cpu_cfs_throttled_periods_total", "Number of throttled period intervals.", counterKind,
				float64(u.Throttled), nil},
			series{"container_cpu_cfs_throttled_seconds_total", "Total time duration the container has been throttled.",
				counterKind, seconds(u.ThrottledNanoseconds), nil},
			series{"container_spec_cpu_quota", "CPU quota of the container.", gaugeKind, float64(u.Quota), nil})
	}
	return out
}

// reclaimSeries show how the kernel takes memory back.
func reclaimSeries(r *Reclaim) []series {
	return []series{
		{"container_memory_events_high_total", "Cumulative count of memory.high throttle events for the container",
			counterKind, float64(r.AboveHigh), nil},
		{"container_memory_events_max_total", "Cumulative count of memory.max limit hit events for the container",
			counterKind, float64(r.AtMax), nil},
		{"container_memory_file_dirty_bytes",
			"Number of bytes of file cache that has been modified but not yet written back to disk.", gaugeKind,
			float64(r.DirtyFile), nil},
		{"container_memory_file_writeback_bytes",
			"Number of bytes of file cache that is currently being written back to disk.", gaugeKind,
			float64(r.WritebackFile), nil},
		{"container_memory_pgscan_total", "Cumulative number of pages scanned by the page reclaim algorithm.",
			counterKind, float64(r.PagesScanned), nil},
		{"container_memory_pgsteal_total", "Cumulative number of pages reclaimed by the page reclaim algorithm.",
			counterKind, float64(r.PagesTaken), nil},
		{"container_memory_workingset_refault_anon_total",
			"Cumulative number of refaults of previously evicted anonymous pages.", counterKind,
			float64(r.RefaultsAnon), nil},
		{"container_memory_workingset_refault_file_total",
			"Cumulative number of refaults of previously evicted file pages.", counterKind, float64(r.RefaultsFile),
			nil},
	}
}

func memorySeries(u *Usage) []series {
	out := []series{
		{"container_memory_cache", "Number of bytes of page cache memory.", gaugeKind, float64(u.Cache), nil},
		{"container_memory_failcnt", "Number of memory usage hits limits", counterKind, float64(u.FailCount), nil},
		{"container_memory_kernel_usage", "Size of kernel memory allocated in bytes.", gaugeKind, float64(u.Kernel),
			nil},
		{"container_memory_mapped_file", "Size of memory mapped files in bytes.", gaugeKind, float64(u.Mapped), nil},
		{"container_memory_max_usage_bytes", "Maximum memory usage recorded in bytes", gaugeKind, float64(u.MaxUsage),
			nil},
		{"container_memory_rss", "Size of RSS in bytes.", gaugeKind, float64(u.RSS), nil},
		{"container_memory_swap", "Container swap usage in bytes.", gaugeKind, float64(u.Swap), nil},
		{"container_memory_total_active_file_bytes", "Current total active file in bytes.", gaugeKind,
			float64(u.ActiveFile), nil},
		{"container_memory_total_inactive_file_bytes", "Current total inactive file in bytes.", gaugeKind,
			float64(u.InactiveFile), nil},
		{"container_memory_usage_bytes",
			"Current memory usage in bytes, including all memory regardless of when it was accessed", gaugeKind,
			float64(u.Memory), nil},
		{"container_memory_working_set_bytes", "Current working set in bytes.", gaugeKind, float64(u.WorkingSet), nil},
		{"container_oom_events_total", "Count of out of memory events observed for the container", counterKind,
			float64(u.OOMKills), nil},
	}
	for _, f := range []struct {
		kind string
		n    uint64
	}{{"pgfault", u.PageFaults}, {"pgmajfault", u.MajorFaults}} {
		out = append(out, series{"container_memory_failures_total", "Cumulative count of memory allocation failures.",
			counterKind, float64(f.n),
			[]string{"failure_type", f.kind, "scope", "hierarchy"}})
	}
	return out
}

// pressureSeries are the times that processes have waited for a resource: some of them, or all (stalled).
func pressureSeries(u *Usage) (out []series) {
	const microseconds = 1e6
	for _, of := range []struct {
		name, help string
		p          *psi.Pressure
	}{{"cpu", "CPU", u.CPUPressure}, {"memory", "memory", u.MemoryPressure}, {"io", "IO", u.IOPressure}} {
		if of.p == nil {
			continue
		}
		out = append(out,
			series{"container_pressure_" + of.name + "_stalled_seconds_total",
				"Total time duration no tasks in the container could make progress due to " + of.help + " congestion.",
				counterKind, float64(of.p.Full.Total) / microseconds, nil},
			series{"container_pressure_" + of.name + "_waiting_seconds_total",
				"Total time duration tasks in the container have waited due to " + of.help + " congestion.", counterKind,
				float64(of.p.Some.Total) / microseconds, nil})
	}
	return out
}

func specSeries(g *Group, now time.Time) []series {
	u := &g.Usage
	out := []series{
		{"container_file_descriptors", "Number of files that the container's processes have open.", gaugeKind,
			float64(u.Files), nil},
		{"container_last_seen", "Last time a container was seen by the exporter", gaugeKind, float64(now.Unix()), nil},
		{"container_processes", "Number of processes running inside the container.", gaugeKind, float64(u.Processes),
			nil},
		{"container_sockets", "Number of sockets among the files that the container's processes have open.", gaugeKind,
			float64(u.Sockets), nil},
		{"container_spec_cpu_period", "CPU period of the container.", gaugeKind, float64(u.Period), nil},
		{"container_spec_cpu_shares", "CPU share of the container.", gaugeKind, float64(u.Shares), nil},
		{"container_spec_memory_limit_bytes", "Memory limit for the container.", gaugeKind, float64(u.MemoryLimit),
			nil},
		{"container_spec_memory_reservation_limit_bytes", "Memory reservation limit for the container.", gaugeKind,
			float64(u.Reservation), nil},
		{"container_spec_memory_swap_limit_bytes", "Memory swap limit for the container.", gaugeKind,
			float64(u.SwapLimit), nil},
		{"container_creation_time_seconds", "Container creation time since unix epoch in seconds.", gaugeKind,
			float64(g.Started.Unix()), nil},
		{"container_start_time_seconds", "Start time of the container since unix epoch in seconds.", gaugeKind,
			float64(g.Started.Unix()), nil},
		{"container_threads", "Number of threads running inside the container", gaugeKind, float64(u.Threads), nil},
		{"container_threads_max", "Maximum number of threads allowed inside the container, infinity if value is zero",
			gaugeKind, float64(u.ThreadsMax), nil},
	}
	if g.MaxFiles != nil {
		out = append(out, series{"container_ulimits_soft", "Soft limits of the container's first process; -1 is none.",
			gaugeKind, float64(*g.MaxFiles), []string{"ulimit", "max_open_files"}})
	}
	return out
}

// DeviceName is how a disk is called that has no name.
func DeviceName(major, minor uint64) string {
	return strconv.FormatUint(major, 10) + ":" + strconv.FormatUint(minor, 10)
}
