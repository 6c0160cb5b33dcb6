package cgroup

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/memoryqos"
)

// slicesOf is a systemd that keeps in mind which slices run, with what it was told of them.
type slicesOf struct {
	runs  map[string]map[string]uint64
	fails error
}

func (s *slicesOf) start(ctx context.Context, slice string, p []property) error {
	if s.runs[slice] == nil {
		s.runs[slice] = map[string]uint64{}
	}
	return s.change(ctx, slice, p)
}

func (s *slicesOf) change(_ context.Context, slice string, p []property) error {
	for _, one := range p {
		s.runs[slice][one.Name] = one.Value.Value().(uint64)
	}
	return s.fails
}

func (s *slicesOf) stop(_ context.Context, slice string) error {
	delete(s.runs, slice)
	return s.fails
}

// TestSystemdKnowsPods: what systemd is not told, it sets to its own defaults at the next daemon-reload, and a slice
// that it is not told to stop runs for ever.
func TestSystemdKnowsPods(t *testing.T) {
	t.Parallel()
	m, dir := fakeTree(t, true)
	s := &slicesOf{runs: map[string]map[string]uint64{}}
	m.units, m.names.systemd = s, true
	m.cfg.Limit = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}
	m.cfg.PodPidsLimit = 50
	if err := m.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	pod := podOf("a-b", container("500m", "1005m", "8Mi", "64Mi"))
	pod.Status.QOSClass = corev1.PodQOSBurstable
	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := m.UpdateQoS(t.Context(), []*corev1.Pod{pod}); err != nil {
		t.Fatal(err)
	}
	const slice = "kubepods-burstable-poda_b.slice"
	if d := cmp.Diff(map[string]map[string]uint64{
		"kubepods.slice":            {"CPUWeight": 174, "MemoryMax": 1 << 30, "MemoryMin": 0, "MemoryLow": 0},
		"kubepods-burstable.slice":  {"CPUWeight": 59, "MemoryMax": math.MaxUint64, "MemoryMin": 0, "MemoryLow": 0},
		"kubepods-besteffort.slice": {"CPUWeight": 1, "MemoryMax": math.MaxUint64},
		slice: {"CPUWeight": 59, "CPUQuotaPerSecUSec": 1_010_000, "MemoryMax": 64 << 20, "MemorySwapMax": 0,
			"TasksMax": 50, "MemoryMin": 0, "MemoryLow": 0, "MemoryHigh": math.MaxUint64},
	}, s.runs); d != "" {
		t.Error(d)
	}
	if info, err := os.Stat(filepath.Join(dir, "kubepods.slice/kubepods-burstable.slice", slice)); err != nil ||
		!info.IsDir() {
		t.Error(err)
	}
	larger := podOf("a-b", container("500m", "", "8Mi", "128Mi"))
	larger.Status.QOSClass = corev1.PodQOSBurstable
	if err := m.Settle(t.Context(), larger); err != nil || s.runs[slice]["MemoryMax"] != 128<<20 ||
		s.runs[slice]["CPUQuotaPerSecUSec"] != math.MaxUint64 {
		t.Error(err, s.runs[slice])
	}
	if err := m.Unprepare(t.Context(), pod.UID); err != nil || s.runs[slice] != nil || len(s.runs) != 3 {
		t.Error(err, s.runs)
	}
	s.fails = errors.New("no")
	if err := m.Prepare(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "no") {
		t.Error(err)
	}
}

func TestSystemdProperties(t *testing.T) {
	t.Parallel()
	v := values{cpuShares: 2, cpuQuota: 1000, memory: 5, swap: 6, pids: 7, high: -1,
		protected: &memoryqos.Protection{}, hugePages: map[string]int64{"2MB": 1}}
	names := func(list []property) (out []string) {
		for _, p := range list {
			if _, is := p.Value.Value().(uint64); !is {
				t.Errorf("%s is a %T", p.Name, p.Value.Value())
			}
			out = append(out, p.Name)
		}
		return out
	}
	if got := names(v.properties(true)); !slices.Equal(got,
		[]string{"CPUWeight", "CPUQuotaPerSecUSec", "MemoryMax", "MemoryMin", "MemoryLow", "MemoryHigh", "MemorySwapMax", "TasksMax"}) {
		t.Error(got)
	}
	if got := names(v.properties(false)); !slices.Equal(got,
		[]string{"CPUShares", "CPUQuotaPerSecUSec", "MemoryLimit", "TasksMax"}) {
		t.Error(got)
	}
	if got := (values{}).properties(true); len(got) != 0 {
		t.Error(got)
	}
	for quota, want := range map[int64]uint64{1000: 10_000, 1001: 20_000, 50_000: 500_000, 250_000: 2_500_000} {
		if got := quotaPerSecond(quota, usualPeriod); got != want {
			t.Errorf("quota %d: %d, want %d", quota, got, want)
		}
	}
}

// The driver systemd does not begin where nobody takes its slices up, and says what to do.
func TestSystemdIsMissing(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Driver: DriverSystemd, running: filepath.Join(t.TempDir(), "none"),
		Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "systemd not running on this host") {
		t.Error(err)
	}
	u := systemdUnits{"unix:path=" + filepath.Join(t.TempDir(), "none")}
	for _, err := range []error{u.start(t.Context(), "a.slice", nil), u.stop(t.Context(), "a.slice"),
		u.change(t.Context(), "a.slice", []property{{"TasksMax", dbus.MakeVariant(uint64(1))}})} {
		if err == nil || !strings.Contains(err.Error(), "a.slice") {
			t.Error(err)
		}
	}
}

// TestHugePages: a pod has the huge pages that it requests and no others, of every size that the kernel has.
func TestHugePages(t *testing.T) {
	t.Parallel()
	for _, v2 := range []bool{true, false} {
		m, dir := fakeTree(t, v2)
		suffix := ".max"
		if !v2 {
			suffix, dir = ".limit_in_bytes", filepath.Join(dir, "hugetlb")
			m.tree.by["hugetlb"], m.tree.mounts = dir, append(m.tree.mounts, dir)
		}
		pod := podOf("u", container("1", "1", "1Mi", "1Mi"))
		c := &pod.Spec.Containers[0]
		c.Resources.Requests["hugepages-2Mi"] = resource.MustParse("4Mi")
		c.Resources.Limits["hugepages-2Mi"] = resource.MustParse("4Mi")
		group := filepath.Join(dir, "kubepods", "podu")
		if err := os.MkdirAll(group, 0o755); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"hugetlb.2MB": "4194304", "hugetlb.2MB.rsvd": "4194304", "hugetlb.1GB": "0",
			"hugetlb.1GB.rsvd": "0"}
		for name := range want {
			if err := os.WriteFile(filepath.Join(group, name+suffix), []byte("max"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Prepare(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if got, err := os.ReadFile(filepath.Join(group, name+suffix)); err != nil || string(got) != value {
				t.Errorf("v2 %v: %s: %q, want %s, %v", v2, name, got, value, err)
			}
		}
	}
}
