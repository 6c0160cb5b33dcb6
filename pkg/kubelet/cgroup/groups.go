package cgroup

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Group is a cgroup that holds pods, or belongs to one.
type Group struct {
	// Path is the cgroup beneath its hierarchy's mount point: "/kubepods/burstable/pod1/2".
	Path string
	// Pod is the pod that it belongs to, "" for those that hold all pods or a class of them. ID is the id of the
	// container or sandbox in it, "" for the pod's own.
	Pod types.UID
	ID  string
	// Made is when the cgroup was made.
	Made time.Time
}

// Groups lists the cgroups of pods, from the one that holds all of them to those of their containers. Cgroups that
// vanish meanwhile are left out.
func (m *Manager) Groups() []Group {
	var out []Group
	m.walk(m.names.path("kubepods"), "", &out)
	return out
}

func (m *Manager) walk(cgroup string, pod types.UID, out *[]Group) {
	dir := m.tree.file("memory", cgroup, "")
	info, err := os.Stat(dir)
	if err != nil {
		return
	}
	g := Group{Path: cgroup, Pod: pod, Made: info.ModTime()}
	if pod != "" {
		g.ID = strings.TrimSuffix(strings.TrimPrefix(path.Base(cgroup), "cri-containerd-"), ".scope")
	} else if uid, ok := m.names.uid(path.Base(cgroup)); ok {
		pod, g.Pod = uid, uid
	}
	if *out = append(*out, g); g.ID != "" {
		return // what a container makes in its own
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			m.walk(path.Join(cgroup, e.Name()), pod, out)
		}
	}
}

// Process returns a process in the cgroup, 0 if there is none.
func (m *Manager) Process(g Group) int {
	text, err := os.ReadFile(m.tree.file("memory", g.Path, "cgroup.procs"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, _ := strconv.Atoi(first)
	return pid
}

// Stats are what a cgroup has used and what it may use, in full. What the version of cgroups does not report is 0.
type Stats struct {
	Usage
	// User and System are nanoseconds of CPU. ThrottledNanoseconds is how long it was kept from the CPU by its quota,
	// in Throttled of Periods.
	User, System, ThrottledNanoseconds uint64
	Periods, Throttled                 uint64
	// Cache, Mapped, Kernel and the others are bytes.
	Cache, Mapped, Kernel, ActiveFile, InactiveFile, MaxUsage uint64
	// FailCount is how often the limit was reached, OOMKills how often a process was killed for it.
	FailCount, OOMKills uint64
	// CPUShares is the weight in terms of cgroup v1; CPUQuota and CPUPeriod are microseconds, the quota 0 without a
	// limit.
	CPUShares, CPUQuota, CPUPeriod uint64
	Reservation, SwapLimit         uint64
	// Threads is how many there are, ThreadsMax how many there may be.
	Threads, ThreadsMax uint64
	Reclaim
	// PIDs are its processes, those of the cgroup itself before those of cgroups in it.
	PIDs []int
	IO   []IO
}

// Reclaim is how the kernel takes memory back, by cgroup v2.
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

// IO is what a cgroup has read from one disk and written to it.
type IO struct {
	// Major and Minor name the device.
	Major, Minor                          uint64
	ReadBytes, WriteBytes, Reads, Written uint64
}

// Stats reads everything about a cgroup. Only what the usage needs is an error; the rest is 0 if it cannot be read.
func (m *Manager) Stats(g Group) (Stats, error) {
	u, err := m.usage(g.Path)
	if err != nil {
		return Stats{}, fmt.Errorf("read %s: %w", g.Path, err)
	}
	s := Stats{Usage: u, Threads: u.Processes, PIDs: m.pids(g.Path)}
	s.Processes = uint64(len(s.PIDs))
	if m.tree.v2 {
		m.statsV2(g.Path, &s)
	} else {
		m.statsV1(g.Path, &s)
	}
	return s, nil
}

// pids returns the processes of a cgroup and of those in it.
func (m *Manager) pids(cgroup string) (out []int) {
	_ = filepath.WalkDir(m.tree.file("memory", cgroup, ""), func(p string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(p, "cgroup.procs"))
		for line := range strings.Lines(string(text)) {
			if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
				out = append(out, pid)
			}
		}
		return nil
	})
	return out
}

// number reads a file with one number; 0 if it is missing, or means no limit.
func (m *Manager) number(controller, cgroup, file string) uint64 {
	n, err := readNumber(m.tree.file(controller, cgroup, file))
	if err != nil || n >= noLimit {
		return 0
	}
	return n
}

func (m *Manager) fields(controller, cgroup, file string) map[string]uint64 {
	f, _ := readFields(m.tree.file(controller, cgroup, file))
	return f
}

// userTick is the unit of v1's cpuacct.stat, in nanoseconds.
const userTick = 10_000_000

func (m *Manager) statsV1(cgroup string, s *Stats) {
	cpu, throttled := m.fields("cpuacct", cgroup, "cpuacct.stat"), m.fields("cpu", cgroup, "cpu.stat")
	s.User, s.System = cpu["user"]*userTick, cpu["system"]*userTick
	s.Periods, s.Throttled, s.ThrottledNanoseconds = throttled["nr_periods"], throttled["nr_throttled"],
		throttled["throttled_time"]
	mem := m.fields("memory", cgroup, "memory.stat")
	s.Cache, s.Mapped = mem["total_cache"], mem["total_mapped_file"]
	s.ActiveFile, s.InactiveFile = mem["total_active_file"], mem["total_inactive_file"]
	s.Kernel, s.MaxUsage, s.FailCount = m.number("memory", cgroup, "memory.kmem.usage_in_bytes"),
		m.number("memory", cgroup, "memory.max_usage_in_bytes"), m.number("memory", cgroup, "memory.failcnt")
	s.OOMKills = m.fields("memory", cgroup, "memory.oom_control")["oom_kill"]
	s.CPUShares, s.CPUQuota, s.CPUPeriod = m.number("cpu", cgroup, "cpu.shares"),
		m.number("cpu", cgroup, "cpu.cfs_quota_us"), m.number("cpu", cgroup, "cpu.cfs_period_us")
	s.Reservation, s.SwapLimit = m.number("memory", cgroup, "memory.soft_limit_in_bytes"),
		m.number("memory", cgroup, memsw)
	s.ThreadsMax = m.number("pids", cgroup, "pids.max")
	disks := map[string]*IO{}
	for file, of := range map[string]func(*IO) (read, write *uint64){
		"blkio.throttle.io_service_bytes_recursive": func(d *IO) (*uint64, *uint64) {
			return &d.ReadBytes, &d.WriteBytes
		},
		"blkio.throttle.io_serviced_recursive": func(d *IO) (*uint64, *uint64) { return &d.Reads, &d.Written },
	} {
		text, _ := os.ReadFile(m.tree.file("blkio", cgroup, file))
		for line := range strings.Lines(string(text)) { // 254:0 Read 4096
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			read, write := of(disk(disks, f[0]))
			n, _ := strconv.ParseUint(f[2], 10, 64)
			switch f[1] {
			case "Read":
				*read = n
			case "Write":
				*write = n
			}
		}
	}
	s.IO = known(disks)
}

func (m *Manager) statsV2(cgroup string, s *Stats) {
	cpu := m.fields("cpu", cgroup, "cpu.stat")
	s.User, s.System = cpu["user_usec"]*1000, cpu["system_usec"]*1000
	s.Periods, s.Throttled, s.ThrottledNanoseconds = cpu["nr_periods"], cpu["nr_throttled"], cpu["throttled_usec"]*1000
	mem, events := m.fields("memory", cgroup, "memory.stat"), m.fields("memory", cgroup, "memory.events")
	s.Cache, s.Mapped, s.Kernel = mem["file"], mem["file_mapped"], mem["kernel"]
	s.ActiveFile, s.InactiveFile = mem["active_file"], mem["inactive_file"]
	s.Reclaim = Reclaim{PagesScanned: mem["pgscan"], PagesTaken: mem["pgsteal"],
		RefaultsAnon: mem["workingset_refault_anon"], RefaultsFile: mem["workingset_refault_file"],
		DirtyFile: mem["file_dirty"], WritebackFile: mem["file_writeback"],
		AboveHigh: events["high"], AtMax: events["max"]}
	s.MaxUsage = m.number("memory", cgroup, "memory.peak")
	s.FailCount, s.OOMKills = events["max"], events["oom_kill"]
	if w := m.number("cpu", cgroup, "cpu.weight"); w > 0 {
		s.CPUShares = 2 + (w-1)*262142/9999
	}
	text, _ := os.ReadFile(m.tree.file("cpu", cgroup, "cpu.max")) // "max 100000"
	if f := strings.Fields(string(text)); len(f) == 2 {
		s.CPUQuota, _ = strconv.ParseUint(f[0], 10, 64)
		s.CPUPeriod, _ = strconv.ParseUint(f[1], 10, 64)
	}
	s.Reservation, s.SwapLimit, s.ThreadsMax = m.number("memory", cgroup, "memory.low"),
		m.number("memory", cgroup, "memory.swap.max"), m.number("pids", cgroup, "pids.max")
	disks := map[string]*IO{}
	text, _ = os.ReadFile(m.tree.file("io", cgroup, "io.stat"))
	for line := range strings.Lines(string(text)) { // 254:0 rbytes=1 wbytes=2 rios=3 wios=4 …
		f := strings.Fields(line)
		for i, field := range f {
			if i == 0 {
				continue
			}
			d := disk(disks, f[0])
			name, value, _ := strings.Cut(field, "=")
			n, _ := strconv.ParseUint(value, 10, 64)
			switch name {
			case "rbytes":
				d.ReadBytes = n
			case "wbytes":
				d.WriteBytes = n
			case "rios":
				d.Reads = n
			case "wios":
				d.Written = n
			}
		}
	}
	s.IO = known(disks)
}

// disk returns the entry of a device "major:minor", made on first use.
func disk(disks map[string]*IO, name string) *IO {
	d := disks[name]
	if d == nil {
		d = &IO{}
		major, minor, _ := strings.Cut(name, ":")
		d.Major, _ = strconv.ParseUint(major, 10, 64)
		d.Minor, _ = strconv.ParseUint(minor, 10, 64)
		disks[name] = d
	}
	return d
}

func known(disks map[string]*IO) []IO {
	var out []IO
	for _, d := range disks {
		out = append(out, *d)
	}
	return out
}

// PodProcess returns a process of the pod, 0 if there is none.
func (m *Manager) PodProcess(pod *corev1.Pod) int {
	var groups []Group
	m.walk(m.path(pod), "", &groups)
	for _, g := range groups {
		if pid := m.Process(g); pid > 0 {
			return pid
		}
	}
	return 0
}
