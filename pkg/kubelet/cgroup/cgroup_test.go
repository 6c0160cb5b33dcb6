package cgroup

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cmtest"
	"bonsai/pkg/kubelet/memoryqos"
	"bonsai/pkg/kubelet/runtime"
)

// container makes one of "cpu request, cpu limit, memory request, memory limit"; "" is not set.
func container(cr, cl, mr, ml string) corev1.Container {
	c := corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{},
		Limits: corev1.ResourceList{}}}
	set := func(l corev1.ResourceList, n corev1.ResourceName, v string) {
		if v != "" {
			l[n] = resource.MustParse(v)
		}
	}
	set(c.Resources.Requests, "cpu", cr)
	set(c.Resources.Limits, "cpu", cl)
	set(c.Resources.Requests, "memory", mr)
	set(c.Resources.Limits, "memory", ml)
	return c
}

func podOf(uid string, cs ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{Containers: cs}}
}

func TestForPod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		class corev1.PodQOSClass
		want  values
	}{
		"best effort": {podOf("u", container("", "", "", "")), corev1.PodQOSBestEffort,
			values{cpuShares: 2, cpuQuota: -1, noSwap: true, pids: 9}},
		"guaranteed": {podOf("u", container("500m", "500m", "1Mi", "1Mi")), corev1.PodQOSGuaranteed,
			values{cpuShares: 512, cpuQuota: 50000, memory: 1 << 20, noSwap: true, pids: 9}},
		"burstable": {podOf("u", container("100m", "", "", "")), corev1.PodQOSBurstable,
			values{cpuShares: 102, cpuQuota: -1, noSwap: true, pids: 9}},
		"one without limits": {podOf("u", container("1", "1", "1Mi", "1Mi"), container("", "2", "", "")),
			corev1.PodQOSBurstable, values{cpuShares: 1024, cpuQuota: 300000, noSwap: true, pids: 9}},
		"tiny quota": {podOf("u", container("1m", "1m", "", "")), corev1.PodQOSBurstable,
			values{cpuShares: 2, cpuQuota: 1000, noSwap: true, pids: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c := runtime.QOSClass(tc.pod); c != tc.class {
				t.Error("class", c)
			}
			tc.want.hugePages, tc.want.cpuPeriod = map[string]int64{}, usualPeriod
			tc.want.protected, tc.want.high = &memoryqos.Protection{}, memoryqos.Unlimited
			got := (&Config{PodPidsLimit: 9}).forPod(tc.pod)
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(values{})); d != "" {
				t.Error(d)
			}
		})
	}
	done := podOf("d", container("1", "", "", ""))
	done.Status.Phase = corev1.PodSucceeded
	if v := forBurstable([]*corev1.Pod{podOf("a", container("250m", "", "", "")),
		podOf("b", container("750m", "", "", "")), done}); v.cpuShares != 1024 {
		t.Error(v)
	}
}

func TestConversions(t *testing.T) {
	t.Parallel()
	for milli, want := range map[int64]uint64{0: 2, 1: 2, 10: 10, 1000: 1024, 1 << 30: 262144} {
		if got := cpuShares(milli); got != want {
			t.Errorf("Shares(%d) = %d", milli, got)
		}
	}
	for shares, want := range map[uint64]uint64{0: 0, 1: 1, 2: 1, 1024: 100, 262144: 10000, 1 << 40: 10000} {
		if got := weight(shares); got != want {
			t.Errorf("Weight(%d) = %d", shares, got)
		}
	}
	last := uint64(0)
	for s := uint64(2); s < maxShares; s += 97 {
		w := weight(s)
		if w < last || w < 1 || w > 10000 {
			t.Fatalf("Weight(%d) = %d after %d", s, w, last)
		}
		last = w
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	fs, _ := newNaming("/node-1", DriverCgroupfs)
	sd, _ := newNaming("/", DriverSystemd)
	parts := podParts(corev1.PodQOSBurstable, "ab-cd")
	if p := fs.path(parts...); p != "/node-1/kubepods/burstable/podab-cd" || fs.parent(p) != p ||
		fs.container(p, "id") != p+"/id" {
		t.Error(p)
	}
	if p := fs.path(podParts(corev1.PodQOSGuaranteed, "x")...); p != "/node-1/kubepods/podx" {
		t.Error(p)
	}
	p := sd.path(parts...)
	if p != "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_cd.slice" ||
		sd.parent(p) != "kubepods-burstable-podab_cd.slice" || sd.container(p, "id") != p+"/cri-containerd-id.scope" {
		t.Error(p)
	}
	if uid, ok := sd.uid("kubepods-burstable-podab_cd.slice"); !ok || uid != "ab-cd" {
		t.Error(uid)
	}
	for _, other := range []string{"kubepods-burstable.slice", "kubepods.slice"} {
		if uid, ok := sd.uid(other); ok {
			t.Error(other, "is pod", uid)
		}
	}
	if _, ok := fs.uid("burstable"); ok {
		t.Error("burstable is no pod")
	}
	if _, err := newNaming("/", "other"); err == nil {
		t.Error("unknown driver accepted")
	}
}

// fakeTree makes plain directories look like hierarchies; the kernel's files are made where a test needs them.
func fakeTree(t *testing.T, v2 bool) (*Manager, string) {
	t.Helper()
	dir := t.TempDir()
	var info strings.Builder
	line := func(i int, point, fstype, options string) {
		fmt.Fprintf(&info, "%d 1 0:%d / %s rw shared:1 - %s cgroup rw,%s\n", i, i, point, fstype, options)
	}
	if v2 {
		line(30, dir, "cgroup2", "nsdelegate")
	} else {
		for i, c := range []string{"cpu,cpuacct", "memory", "pids"} {
			d := filepath.Join(dir, c)
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
			line(30+i, d, "cgroup", c)
		}
	}
	path := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(path, []byte(info.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{mountinfo: path, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m, dir
}

func TestSettings(t *testing.T) {
	t.Parallel()
	v := values{cpuShares: 1024, cpuQuota: 50000, memory: 4096, pids: 7}
	one, _ := fakeTree(t, false)
	two, _ := fakeTree(t, true)
	if one.Version() != 1 || two.Version() != 2 {
		t.Fatal("versions", one.Version(), two.Version())
	}
	all, has := cmp.AllowUnexported(setting{}), present{cpuPeriod: usualPeriod}
	if d := cmp.Diff([]setting{{"cpu", "cpu.shares", "1024"}, {"cpu", "cpu.cfs_period_us", "100000"},
		{"cpu", "cpu.cfs_quota_us", "50000"}, {"memory", "memory.limit_in_bytes", "4096"}, {"pids", "pids.max", "7"}},
		one.tree.settings(v, has), all); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]setting{{"cpu", "cpu.weight", "100"}, {"cpu", "cpu.max", "50000 100000"},
		{"memory", "memory.max", "4096"}, {"pids", "pids.max", "7"}}, two.tree.settings(v, has), all); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]setting{{"cpu", "cpu.max", "max 100000"}}, two.tree.settings(values{cpuQuota: -1}, present{}),
		all); d != "" {
		t.Error(d)
	}
	if len(one.tree.settings(values{}, present{})) != 0 {
		t.Error("zero values write something")
	}
}

// With v1, the limit of memory and swap together is never below that of memory, on no way from one to the other.
func TestSwapSettings(t *testing.T) {
	t.Parallel()
	one, _ := fakeTree(t, false)
	two, _ := fakeTree(t, true)
	const limit, both, swappiness = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.swappiness"
	for _, c := range []struct {
		name string
		m    *Manager
		v    values
		now  int64
		want []setting
	}{
		{"v1, a new cgroup", one, values{memory: 4096, noSwap: true}, math.MaxInt64,
			[]setting{{"memory", limit, "4096"}, {"memory", both, "4096"}, {"memory", swappiness, "0"}}},
		{"v1, less", one, values{memory: 4096, noSwap: true}, 8192,
			[]setting{{"memory", limit, "4096"}, {"memory", both, "4096"}, {"memory", swappiness, "0"}}},
		{"v1, more", one, values{memory: 4096, noSwap: true}, 1024,
			[]setting{{"memory", both, "4096"}, {"memory", limit, "4096"}, {"memory", swappiness, "0"}}},
		{"v1, no limit", one, values{noSwap: true}, math.MaxInt64, []setting{{"memory", swappiness, "0"}}},
		{"v2", two, values{memory: 4096, noSwap: true}, 0,
			[]setting{{"memory", "memory.max", "4096"}, {"memory", "memory.swap.max", "0"}}},
		{"v2, no limit", two, values{noSwap: true}, 0, []setting{{"memory", "memory.swap.max", "0"}}},
	} {
		got := c.m.tree.settings(c.v, present{memory: c.now})
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(setting{})); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// What the kernel has no file for, it does not account.
func TestSwapAccounting(t *testing.T) {
	t.Parallel()
	for _, v2 := range []bool{false, true} {
		m, dir := fakeTree(t, v2)
		file := filepath.Join(dir, "memory", "kubepods", "memory.memsw.limit_in_bytes")
		if v2 {
			file = filepath.Join(dir, "kubepods", "memory.swap.max")
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if m.limitsSwap() {
			t.Errorf("v2 %v: swap is accounted without a file", v2)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if !m.limitsSwap() {
			t.Errorf("v2 %v: swap is not accounted", v2)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	want := Usage{CPUNanoseconds: 5000, MemoryBytes: 1000, WorkingSetBytes: 900, RSSBytes: 700, PageFaults: 3,
		MajorPageFaults: 1, Processes: 4, MemoryLimitBytes: 2000, MemoryAvail: 1100,
		Swap: 30, SwapLimited: true}
	put := func(dir string, files map[string]string) {
		for name, content := range files {
			p := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	one, d1 := fakeTree(t, false)
	const g = "/kubepods/besteffort/podu/"
	put(d1, map[string]string{"cpu,cpuacct" + g + "cpuacct.usage": "5000\n",
		"memory" + g + "memory.usage_in_bytes": "1000\n", "memory" + g + "memory.limit_in_bytes": "2000\n",
		"pids" + g + "pids.current":  "4\n",
		"memory" + g + "memory.stat": "rss 1\ntotal_rss 700\ntotal_pgfault 3\ntotal_pgmajfault 1\ntotal_inactive_file 100\ntotal_swap 30\n", "memory" + g + "memory.swappiness": "0\n"})
	two, d2 := fakeTree(t, true)
	put(d2, map[string]string{g + "cpu.stat": "usage_usec 5\n", g + "memory.current": "1000\n",
		g + "memory.max": "2000\n", g + "pids.current": "4\n", g + "memory.swap.current": "30\n",
		g + "memory.swap.max": "20\n", g + "memory.stat": "anon 700\npgfault 3\npgmajfault 1\ninactive_file 100\n",
		g + "c1/cpu.stat": "usage_usec 5\n", g + "c1/memory.current": "10\n", g + "c1/memory.max": "max\n",
		g + "c1/memory.stat": "inactive_file 100\n", g + "c1/memory.swap.current": "10\n",
		g + "c1/memory.swap.max": "60\n",
		g + "c2/cpu.stat":        "usage_usec 5\n", g + "c2/memory.current": "10\n", g + "c2/memory.stat": "anon 1\n",
		g + "c2/memory.swap.max": "max\n",
		g + "c2/memory.pressure": "some avg10=1.50 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4\n"})
	for _, m := range []*Manager{one, two} {
		got, err := m.PodUsage(podOf("u"))
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Error(m.Version(), err, d)
		}
	}
	if got, err := two.ContainerUsage(podOf("u"), "c2"); err != nil || got.SwapLimited {
		t.Error("without a limit of swap:", got, err)
	} else if p := got.MemoryPressure; p == nil || p.Some.Total != 9 || p.Some.Avg10 != 1.5 || p.Full.Total != 4 ||
		got.CPUPressure != nil || got.IOPressure != nil {
		t.Errorf("pressure: %+v", got)
	}
	if got, err := two.ContainerUsage(podOf("u"),
		"c1"); err != nil || !got.SwapLimited || got.SwapAvail != 50 || got.WorkingSetBytes != 0 ||
		got.MemoryLimitBytes != 0 {
		t.Error(got, err)
	}
	if _, err := two.ContainerUsage(podOf("u"), "../c1"); err == nil {
		t.Error("a container ID that is a path was accepted")
	}
}

// TestKernel runs a pod's cgroup through its life on the real hierarchies, in a root of its own.
func TestKernel(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: making cgroups needs root")
	}
	ctx := context.Background()
	root := "bonsai-test-" + strconv.Itoa(os.Getpid())
	m, err := New(Config{Root: root, Log: slog.New(slog.DiscardHandler), PodPidsLimit: 50})
	if err != nil {
		t.Skip("SKIPPED: no cgroups on this machine:", err)
	}
	t.Cleanup(func() {
		if err := m.tree.remove(ctx, "/"+root); err != nil {
			t.Error(err)
		}
	})
	if err := m.Setup(ctx); err != nil {
		if strings.Contains(err.Error(), "read-only") || strings.Contains(err.Error(), "permission") {
			t.Skip("SKIPPED: cgroups cannot be made here:", err)
		}
		t.Fatal(err)
	}
	pod := podOf("uid-1", container("500m", "1", "8Mi", "64Mi"))
	cmtest.Run(t, func() cm.Provider {
		restarted, err := New(m.cfg)
		if err != nil {
			t.Fatal(err)
		}
		return restarted
	}, pod)
	if err := m.Prepare(ctx, pod); err != nil {
		t.Fatal(err)
	}
	var o runtime.SandboxOptions
	m.Sandbox(pod, &o)
	parent := o.CgroupParent
	if parent != "/"+root+"/kubepods/burstable/poduid-1" {
		t.Fatal(parent)
	}
	if err := m.UpdateQoS(ctx, []*corev1.Pod{pod}); err != nil {
		t.Fatal(err)
	}
	memory := "memory.limit_in_bytes"
	if m.Version() == 2 {
		memory = "memory.max"
	}
	if n, err := readNumber(m.tree.file("memory", parent, memory)); err != nil || n != 64<<20 {
		t.Error("memory limit", n, err)
	}
	// Up and down again, memory and swap together are limited like memory: no write may fail.
	for _, limit := range []string{"128Mi", "32Mi", "64Mi"} {
		changed := podOf("uid-1", container("500m", "1", "8Mi", limit))
		if err := m.Prepare(ctx, changed); err != nil {
			t.Fatal("to", limit, err)
		}
		q := resource.MustParse(limit)
		file, want := "memory.memsw.limit_in_bytes", uint64(q.Value())
		if m.Version() == 2 {
			file, want = "memory.swap.max", 0
		}
		if n, err := readNumber(m.tree.file("memory", parent, file)); m.limitsSwap() && (err != nil || n != want) {
			t.Errorf("%s with a limit of %s: %d, %v", file, limit, n, err)
		}
	}
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for _, mount := range m.tree.mounts {
		if err := os.WriteFile(filepath.Join(mount, parent, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)),
			0o600); err != nil {
			t.Fatal("the pod's cgroup takes no process:", err)
		}
	}
	if u, err := m.PodUsage(pod); err != nil || u.Processes > 1 || u.MemoryLimitBytes != 64<<20 {
		t.Error(u, err)
	}
	reaped := make(chan error)
	go func() { reaped <- child.Wait() }()
	if err := m.Unprepare(ctx, "uid-2"); err != nil {
		t.Error("a pod without a cgroup:", err)
	}
	if uids, err := m.Prepared(); err != nil || !slices.Equal(uids, []types.UID{"uid-1"}) {
		t.Fatal("another pod's cgroup went:", uids, err)
	}
	if err := m.Kill(podOf("uid-2")); err != nil {
		t.Error("a pod without a cgroup:", err)
	}
	if err := m.Kill(pod); err != nil {
		t.Error(err)
	}
	if err := <-reaped; err == nil {
		t.Error("the process was not killed")
	}
	if err := m.Unprepare(ctx, "uid-1"); err != nil {
		t.Fatal(err)
	}
	if uids, err := m.Prepared(); err != nil || len(uids) != 0 {
		t.Fatal(uids, err)
	}
	if err := m.Prepare(ctx, podOf("../x")); err == nil {
		t.Error("a UID that is a path was accepted")
	}
}

// What is reserved for others is what their cgroup is held to, on both versions; a cgroup that is not there is no
// reason to go on without.
func TestReservedCgroups(t *testing.T) {
	t.Parallel()
	limit := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Mi"),
		"pid": resource.MustParse("9")}
	for _, v2 := range []bool{false, true} {
		dir := t.TempDir()
		trees := &tree{v2: v2, mounts: []string{dir}, by: map[string]string{"cpu": dir, "memory": dir, "pids": dir}}
		files := map[string]string{"cpu.shares": "512", "memory.limit_in_bytes": "1048576", "pids.max": "9"}
		if v2 {
			files = map[string]string{"cpu.weight": strconv.FormatUint(weight(512), 10), "memory.max": "1048576",
				"pids.max": "9"}
		}
		for name := range files {
			if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "a", "b", name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m := &Manager{cfg: Config{Root: "/elsewhere", Reserved: []Reserved{{Name: "/a/b", Limit: limit}}}, tree: trees}
		if err := m.enforceReserved(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(dir, "a", "b", name)); err != nil || string(got) != want {
				t.Errorf("v2 %t: %s is %q, %v", v2, name, got, err)
			}
		}
		m.cfg.Reserved[0].Name = "/a/none"
		if err := m.enforceReserved(t.Context()); err == nil {
			t.Error("a cgroup that is not there was bound")
		}
	}
}

// The cgroups of pods are found by both drivers' names, and read in full on both versions.
func TestGroups(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		v2      bool
		driver  string
		pod, in string
		files   map[string]string
	}{
		"v1": {false, DriverCgroupfs, "/kubepods/burstable/poda-b", "id",
			map[string]string{"cpuacct.usage": "50", "memory.usage_in_bytes": "40",
				"memory.stat":  "total_cache 4\ntotal_rss 3\ntotal_inactive_file 1\n",
				"cpuacct.stat": "user 2\nsystem 1\n", "cpu.stat": "nr_periods 9\nnr_throttled 8\nthrottled_time 7\n",
				"memory.failcnt": "6", "cpu.shares": "2", "cpu.cfs_quota_us": "5000", "cpu.cfs_period_us": "100000",
				"pids.current": "5", "cgroup.procs": "77\n78\n", "memory.soft_limit_in_bytes": "9223372036854771712",
				"memory.oom_control":                        "oom_kill 1\n",
				"blkio.throttle.io_service_bytes_recursive": "254:0 Read 10\n254:0 Write 20\nTotal 30\n",
				"blkio.throttle.io_serviced_recursive":      "254:0 Read 1\n254:0 Write 2\n"}},
		"v2": {true, DriverSystemd, "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda_b.slice",
			"cri-containerd-id.scope", map[string]string{
				"cpu.stat": "usage_usec 1\nuser_usec 20000\nsystem_usec 10000\nnr_periods 9\nnr_throttled 8\nthrottled_usec 7\n", "memory.current": "40", "memory.stat": "file 4\nanon 3\ninactive_file 1\npgscan 21\npgsteal 22\nworkingset_refault_anon 23\nworkingset_refault_file 24\nfile_dirty 25\nfile_writeback 26\n",
				"memory.events": "high 5\nmax 6\noom_kill 1\n", "cpu.weight": "1", "cpu.max": "5000 100000",
				"pids.current": "5",
				"cgroup.procs": "77\n78\n", "io.stat": "254:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0\n"}},
	} {
		dir := t.TempDir()
		leaf := filepath.Join(dir, c.pod, c.in)
		if err := os.MkdirAll(filepath.Join(leaf, "its-own"), 0o755); err != nil {
			t.Fatal(err)
		}
		c.files["its-own/cgroup.procs"] = "79\n"
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(leaf, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		names, err := newNaming("", c.driver)
		if err != nil {
			t.Fatal(err)
		}
		m := &Manager{names: names,
			tree: &tree{v2: c.v2, mounts: []string{dir},
				by: map[string]string{"cpu": dir, "cpuacct": dir, "memory": dir, "pids": dir, "blkio": dir}}}
		groups := m.Groups()
		if len(groups) != 4 || groups[1].Pod != "" || groups[2].Path != c.pod || groups[2].Pod != "a-b" ||
			groups[2].ID != "" || groups[3].ID != "id" || groups[3].Pod != "a-b" || groups[3].Made.IsZero() {
			t.Fatalf("%s: %+v", name, groups)
		}
		s, err := m.Stats(groups[3])
		if err != nil {
			t.Fatal(name, err)
		}
		if s.User != 20_000_000 || s.System != 10_000_000 || s.Periods != 9 || s.Throttled != 8 || s.Cache != 4 ||
			s.RSSBytes != 3 || s.WorkingSetBytes != 39 || s.FailCount != 6 || s.OOMKills != 1 ||
			s.CPUShares != 2 || s.CPUQuota != 5000 || s.CPUPeriod != 100000 || s.Threads != 5 || s.Processes != 3 ||
			!slices.Equal(s.PIDs, []int{77, 78, 79}) || s.Reservation != 0 ||
			!slices.Equal(s.IO, []IO{{Major: 254, ReadBytes: 10, WriteBytes: 20, Reads: 1, Written: 2}}) {
			t.Errorf("%s: %+v", name, s)
		}
		if want := (Reclaim{21, 22, 23, 24, 25, 26, 5, 6}); c.v2 && s.Reclaim != want {
			t.Errorf("%s: %+v, want %+v", name, s.Reclaim, want)
		}
		if pid := m.Process(groups[3]); pid != 77 {
			t.Errorf("%s: process %d", name, pid)
		}
	}
}
