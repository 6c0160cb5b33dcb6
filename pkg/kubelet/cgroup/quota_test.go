package cgroup

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/cpuquota"
)

// TestNoQuota: a pod whose containers have CPUs for themselves has no quota; it would throttle these, too. One of an
// earlier kubelet ends.
func TestNoQuota(t *testing.T) {
	t.Parallel()
	cfg := Config{NoQuota: func(pod *corev1.Pod) bool { return pod.UID == "own" }}
	own, shared := podOf("own", container("2", "2", "1Mi", "1Mi")), podOf("shared", container("2", "2", "1Mi", "1Mi"))
	if v := cfg.forPod(shared); v.cpuQuota != 200_000 {
		t.Errorf("a pod on the shared CPUs: %+v", v)
	}
	v := cfg.forPod(own)
	if v.cpuQuota != -1 || v.cpuShares != 2048 || v.memory != 1<<20 {
		t.Errorf("a pod with CPUs for itself: %+v", v)
	}
	if more := v.more(values{cpuQuota: 200_000, cpuPeriod: 100_000}); more.cpuQuota != -1 {
		t.Errorf("it had a quota before: %+v", more)
	}
}

// TestCPUQuota: limits of CPU are kept in the node's periods, or not at all.
func TestCPUQuota(t *testing.T) {
	t.Parallel()
	pod := podOf("u", container("500m", "500m", "1Mi", "1Mi"))
	one, _ := fakeTree(t, false)
	two, _ := fakeTree(t, true)
	const quota, period = "cpu.cfs_quota_us", "cpu.cfs_period_us"
	for name, c := range map[string]struct {
		cpu  cpuquota.Quota
		has  present
		one  []setting
		two  string
		unit map[string]uint64
	}{
		"default": {cpuquota.Quota{}, present{cpuPeriod: 100000},
			[]setting{{"cpu", period, "100000"}, {"cpu", quota, "50000"}}, "50000 100000",
			map[string]uint64{"CPUQuotaPerSecUSec": 500_000}},
		"short periods": {cpuquota.Quota{Period: 10 * time.Millisecond}, present{cpuPeriod: 10000},
			[]setting{{"cpu", period, "10000"}, {"cpu", quota, "5000"}}, "5000 10000",
			map[string]uint64{"CPUQuotaPerSecUSec": 500_000, "CPUQuotaPeriodUSec": 10_000}},
		"other periods than before": {cpuquota.Quota{Period: time.Second}, present{cpuPeriod: 100000},
			[]setting{{"cpu", quota, "-1"}, {"cpu", period, "1000000"}, {"cpu", quota, "500000"}}, "500000 1000000",
			map[string]uint64{"CPUQuotaPerSecUSec": 500_000, "CPUQuotaPeriodUSec": 1_000_000}},
		"the kernel's least": {cpuquota.Quota{Period: time.Millisecond}, present{cpuPeriod: 1000},
			[]setting{{"cpu", period, "1000"}, {"cpu", quota, "1000"}}, "1000 1000",
			map[string]uint64{"CPUQuotaPerSecUSec": 1_000_000, "CPUQuotaPeriodUSec": 1_000}},
		"off": {cpuquota.Quota{Off: true}, present{cpuPeriod: 100000}, []setting{{"cpu", quota, "-1"}}, "max 100000",
			map[string]uint64{"CPUQuotaPerSecUSec": 1<<64 - 1}},
	} {
		v := (&Config{CPU: c.cpu}).forPod(pod)
		onlyQuota := func(s setting) bool { return !strings.Contains(s.file, "cfs") && s.file != "cpu.max" }
		if d := cmp.Diff(c.one, slices.DeleteFunc(one.tree.settings(v, c.has), onlyQuota),
			cmp.AllowUnexported(setting{})); d != "" {
			t.Errorf("%s, v1: %s", name, d)
		}
		if d := cmp.Diff([]setting{{"cpu", "cpu.max", c.two}},
			slices.DeleteFunc(two.tree.settings(v, c.has), onlyQuota), cmp.AllowUnexported(setting{})); d != "" {
			t.Errorf("%s, v2: %s", name, d)
		}
		got := map[string]uint64{}
		for _, p := range v.properties(true) {
			if strings.HasPrefix(p.Name, "CPUQuota") {
				got[p.Name] = p.Value.Value().(uint64)
			}
		}
		if d := cmp.Diff(c.unit, got); d != "" {
			t.Errorf("%s, systemd: %s", name, d)
		}
	}
}

// TestResizeAcrossPeriods: a quota in other periods is larger if it is a larger part of them.
func TestResizeAcrossPeriods(t *testing.T) {
	t.Parallel()
	for _, v2 := range []bool{false, true} {
		m, read, _ := resizeTree(t, v2)
		m.cfg.CPU.Period = 10 * time.Millisecond
		file, suffix := "cpu.cfs_quota_us", ""
		if v2 {
			file, suffix = "cpu.max", " 10000"
		}
		pod := func(cpu string) *corev1.Pod {
			p := podOf("u", container("1m", cpu, "1Mi", "2Mi"))
			p.Status.QOSClass = corev1.PodQOSBurstable
			return p
		}
		for _, step := range []struct {
			what string
			do   func() error
			want string
		}{
			{"at first", func() error { return m.Settle(t.Context(), pod("1")) }, "10000"},
			{"less, before", func() error { return m.Grow(t.Context(), pod("500m")) }, "10000"},
			{"less, after", func() error { return m.Settle(t.Context(), pod("500m")) }, "5000"},
			{"more, before", func() error { return m.Grow(t.Context(), pod("2")) }, "20000"},
			{"other periods, less, before", func() error {
				m.cfg.CPU.Period, suffix = 100*time.Millisecond, strings.Replace(suffix, "10000", "100000", 1)
				return m.Grow(t.Context(), pod("3"))
			}, "300000"},
		} {
			if err := step.do(); err != nil {
				t.Fatal(step.what, err)
			}
			if got := read(file); got != step.want+suffix {
				t.Errorf("v2 %v, %s: %q, want %q", v2, step.what, got, step.want+suffix)
			}
		}
	}
}

// TestReserve: what better classes request is kept from lower ones (the design proposal "pod-resource-management").
func TestReserve(t *testing.T) {
	t.Parallel()
	const mi = 1 << 20
	ended := podOf("e", container("1", "1", "50Mi", "50Mi"))
	ended.Status.Phase = corev1.PodSucceeded
	pods := []*corev1.Pod{podOf("g", container("1", "1", "200Mi", "200Mi")), podOf("b", container("", "", "100Mi", "")),
		podOf("b2", container("1", "", "", "")), podOf("n", container("", "", "", "")), ended}
	for _, c := range []struct {
		percent, allocatable, burstable, bestEffort int64
		pods                                        []*corev1.Pod
	}{
		{100, 1000 * mi, 800 * mi, 700 * mi, pods},
		{50, 1000 * mi, 900 * mi, 850 * mi, pods},
		{100, 1000 * mi, 1000 * mi, 1000 * mi, nil},
		{100, 300 * mi, 100 * mi, leastMemory, pods},
		{100, 100 * mi, leastMemory, leastMemory, pods},
	} {
		b, n := Reserve{c.percent, c.allocatable}.limits(c.pods)
		if b != c.burstable || n != c.bestEffort {
			t.Errorf("%d%% of %d pods: burstable %d, best effort %d; want %d, %d", c.percent, len(c.pods), b, n,
				c.burstable, c.bestEffort)
		}
	}
}

// TestKernelKeepsReserve: the kernel takes the limits of the classes and periods that change under containers, and a
// kubelet without a reserve lifts the limits.
func TestKernelKeepsReserve(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: making cgroups needs root")
	}
	root := "bonsai-test-reserve-" + strconv.Itoa(os.Getpid())
	cfg := Config{Root: root, Log: slog.New(slog.DiscardHandler), Reserve: Reserve{50, 1 << 30}}
	m, err := New(cfg)
	if err != nil {
		t.Skip("SKIPPED: no cgroups on this machine:", err)
	}
	t.Cleanup(func() {
		if err := m.tree.remove(context.WithoutCancel(t.Context()), "/"+root); err != nil {
			t.Error(err)
		}
	})
	if err := m.Setup(t.Context()); err != nil {
		if strings.Contains(err.Error(), "read-only") || strings.Contains(err.Error(), "permission") {
			t.Skip("SKIPPED: cgroups cannot be made here:", err)
		}
		t.Fatal(err)
	}
	expect := func(when string, burstable, bestEffort int64) {
		t.Helper()
		for class, want := range map[string]int64{"burstable": burstable, "besteffort": bestEffort} {
			if got := m.tree.limits(m.names.path("kubepods", class)).memory; got != want {
				t.Errorf("%s: %s may use %d, want %d", when, class, got, want)
			}
		}
	}
	pod := podOf("g", container("1", "1", "512Mi", "512Mi"))
	if err := m.UpdateQoS(t.Context(), []*corev1.Pod{pod, podOf("b", container("", "", "256Mi", ""))}); err != nil {
		t.Fatal(err)
	}
	expect("one of each", 768<<20, 640<<20)
	if m, err = New(Config{Root: root, Log: cfg.Log}); err != nil {
		t.Fatal(err)
	}
	if err := m.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect("without a reserve", 0, 0)

	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	inner := m.path(pod) + "/c"
	if err := m.tree.create(inner); err != nil {
		t.Fatal(err)
	}
	if err := m.tree.apply(inner, values{cpuQuota: 100000}); err != nil {
		t.Fatal(err)
	}
	for _, period := range []time.Duration{10 * time.Millisecond, time.Second, 100 * time.Millisecond} {
		m.cfg.CPU.Period = period
		if err := m.Prepare(t.Context(), pod); err != nil {
			t.Fatal(period, err)
		}
		v := m.tree.limits(m.path(pod))
		if v.cpuPeriod != period.Microseconds() || v.cpuQuota != v.cpuPeriod {
			t.Errorf("periods of %v: %+v", period, v)
		}
	}
	m.cfg.CPU.Off = true
	if err := m.Prepare(t.Context(), pod); err != nil || m.tree.limits(m.path(pod)).cpuQuota != 0 {
		t.Error("limits of CPU off:", m.tree.limits(m.path(pod)), err)
	}
}
