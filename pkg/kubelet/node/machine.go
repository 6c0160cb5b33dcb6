package node

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Machine tells what the kubelet runs on.
type Machine interface {
	// Info is the part of the node's information that concerns the machine and its operating system.
	Info() corev1.NodeSystemInfo
	// Capacity is cpu, memory, ephemeral-storage and hugepages-<size>.
	Capacity() corev1.ResourceList
}

// Linux reads the machine from /proc and /sys. What cannot be read is left out.
type Linux struct {
	root     string // of the file system, for tests
	dir      string
	info     corev1.NodeSystemInfo
	capacity corev1.ResourceList
}

var _ Machine = (*Linux)(nil)

// NewLinux reads what does not change while the machine runs. dir is the kubelet's root directory, whose file system
// holds the pods' ephemeral storage.
func NewLinux(dir string) *Linux { return newLinux("/", dir) }

// newLinux is NewLinux below another root. CPUs, memory and huge pages that change later do not show until the kubelet
// restarts.
func newLinux(root, dir string) *Linux {
	l := &Linux{root: root, dir: dir}
	l.info = corev1.NodeSystemInfo{
		MachineID:  l.first("etc/machine-id", "var/lib/dbus/machine-id"),
		SystemUUID: l.line("sys/class/dmi/id/product_uuid"), BootID: l.line("proc/sys/kernel/random/boot_id"),
		KernelVersion: l.line("proc/sys/kernel/osrelease"), OSImage: l.osImage(),
		RunningInUserNamespace: l.inUserNamespace(),
	}
	if swap := l.meminfo("SwapTotal"); swap > 0 {
		l.info.Swap = &corev1.NodeSwapStatus{Capacity: &swap}
	}
	defaultTo(&l.info.SystemUUID, l.info.MachineID)
	l.capacity = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(l.meminfo("MemTotal"), resource.BinarySI),
	}
	if st, err := l.statfs(); err == nil {
		l.capacity[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(st.Blocks)*st.Bsize,
			resource.DecimalSI)
	}
	pages, _ := filepath.Glob(filepath.Join(root, "sys/kernel/mm/hugepages/hugepages-*kB"))
	for _, p := range pages {
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(p), "hugepages-"), "kB"), 10,
			64)
		if err != nil {
			continue
		}
		n := l.number("sys/kernel/mm/hugepages/" + filepath.Base(p) + "/nr_hugepages")
		size := resource.NewQuantity(kb*1024, resource.BinarySI)
		l.capacity[corev1.ResourceName(corev1.ResourceHugePagesPrefix+size.String())] = *resource.NewQuantity(n*kb*1024,
			resource.BinarySI)
	}
	return l
}

// Info implements Machine.
func (l *Linux) Info() corev1.NodeSystemInfo { return l.info }

// Capacity implements Machine.
func (l *Linux) Capacity() corev1.ResourceList { return l.capacity.DeepCopy() }

// statfs measures the file system of dir. dir may not exist yet at the first start, hence its parent.
func (l *Linux) statfs() (st syscall.Statfs_t, err error) {
	err = syscall.Statfs(l.dir, &st)
	if err == unix.ENOENT {
		err = syscall.Statfs(filepath.Dir(l.dir), &st)
	}
	return st, err
}

func (l *Linux) line(path string) string {
	data, err := os.ReadFile(filepath.Join(l.root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// first returns what the first of the files says that can be read.
func (l *Linux) first(paths ...string) string {
	for _, path := range paths {
		if id := l.line(path); id != "" {
			return id
		}
	}
	return ""
}

// inUserNamespace reports whether this process is in another user namespace than the machine's first one, whose ids are
// all there are; nil if the file cannot be read.
func (l *Linux) inUserNamespace() *bool {
	ids := strings.Fields(l.line("proc/self/uid_map"))
	if len(ids) == 0 {
		return nil
	}
	in := !slices.Equal(ids, []string{"0", "0", "4294967295"})
	return &in
}

func (l *Linux) number(path string) int64 {
	n, _ := strconv.ParseInt(l.line(path), 10, 64)
	return n
}

// meminfo returns a field of /proc/meminfo in bytes.
func (l *Linux) meminfo(field string) int64 {
	for s := bufio.NewScanner(bytes.NewReader([]byte(l.line("proc/meminfo")))); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) > 1 && f[0] == field+":" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb * 1024
		}
	}
	return 0
}

func (l *Linux) osImage() string {
	for line := range strings.Lines(l.line("etc/os-release")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return "Unknown"
}
