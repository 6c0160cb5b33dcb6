package cgroup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// resizeTree is a tree in which pod u has a cgroup with all files of a resize; read returns one of them, use sets the
// memory in use.
func resizeTree(t *testing.T, v2 bool) (m *Manager, read func(file string) string, use func(pod, container string)) {
	t.Helper()
	m, _ = fakeTree(t, v2)
	pod := podOf("u")
	pod.Status.QOSClass = corev1.PodQOSBurstable
	files := map[string]string{"cpu.shares": "2", "cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000",
		"cpuacct.usage": "0"}
	of := func(file string) string {
		controller, _, _ := strings.Cut(file, ".")
		return m.tree.file(controller, m.path(pod), file)
	}
	memory := map[string]string{"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "0",
		"memory.stat": ""}
	inUse := "memory.usage_in_bytes"
	if v2 {
		files = map[string]string{"cpu.weight": "1", "cpu.max": "max 100000", "cpu.stat": ""}
		memory = map[string]string{"memory.max": "max", "memory.current": "0", "memory.stat": ""}
		inUse = "memory.current"
	}
	put := func(path, content string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, list := range []map[string]string{files, memory} {
		for name, content := range list {
			path := of(name)
			put(path, content)
			put(filepath.Join(filepath.Dir(path), "c1", name), content)
		}
	}
	if !v2 { // the accounting of CPU is a hierarchy of its own, or is not
		put(m.tree.file("cpuacct", m.path(pod), "cpuacct.usage"), "0")
		put(filepath.Join(filepath.Dir(m.tree.file("cpuacct", m.path(pod), "cpuacct.usage")), "c1", "cpuacct.usage"),
			"0")
	}
	read = func(file string) string {
		t.Helper()
		data, err := os.ReadFile(of(file))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	use = func(pod, container string) {
		put(of(inUse), pod)
		put(filepath.Join(filepath.Dir(of(inUse)), "c1", inUse), container)
	}
	return m, read, use
}

func TestResizeGrowsBeforeAndShrinksAfter(t *testing.T) {
	t.Parallel()
	for _, v2 := range []bool{false, true} {
		m, read, use := resizeTree(t, v2)
		quota, memory, suffix := "cpu.cfs_quota_us", "memory.limit_in_bytes", ""
		if v2 {
			quota, memory, suffix = "cpu.max", "memory.max", " 100000"
		}
		pod := func(cpu, mem string) *corev1.Pod {
			p := podOf("u", container(cpu, cpu, mem, mem), container("1m", "1", "1", "1"))
			p.Status.QOSClass = corev1.PodQOSBurstable
			return p
		}
		expect := func(when, wantQuota, wantMemory string) {
			t.Helper()
			if q, mem := read(quota), read(memory); q != wantQuota+suffix || mem != wantMemory {
				t.Errorf("v2 %v, %s: quota %q, memory %q, want %s and %s", v2, when, q, mem, wantQuota, wantMemory)
			}
		}
		do := func(what func(context.Context, *corev1.Pod) error, p *corev1.Pod) {
			t.Helper()
			if err := what(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
		do(m.Settle, pod("1", "999"))
		expect("at first", "200000", "1000")
		do(m.Grow, pod("2", "499"))
		expect("one more, one less: before", "300000", "1000")
		do(m.Settle, pod("2", "499"))
		expect("one more, one less: after", "300000", "500")
		do(m.Grow, pod("1", "999"))
		expect("the other way: before", "300000", "1000")
		do(m.Settle, pod("1", "999"))
		use("600", "550")
		if err := m.Settle(t.Context(), pod("1", "499")); err == nil ||
			err.Error() != "attempting to set pod memory limit (500) below current usage (600)" {
			t.Error(err)
		}
		expect("less than is in use", "200000", "1000")
		if err := m.Prepare(t.Context(), pod("1", "499")); err != nil {
			t.Error(err)
		}
		expect("the kubelet came back in between", "200000", "1000")
		if err := m.MayLimit(pod("1", "499"), "c", "c1",
			499); err == nil || err.Error() !=
			`attempting to set container "c" memory limit (499) below current usage (550)` {
			t.Error(err)
		}
		for _, id := range []string{"c1", "gone"} {
			if err := m.MayLimit(pod("1", "999"), "c", id, 550); err != nil {
				t.Error(err)
			}
		}
	}
}

// A cgroup without a limit has more than any: the limit that it is to have comes last.
func TestResizeFromNoLimit(t *testing.T) {
	t.Parallel()
	for _, v2 := range []bool{false, true} {
		m, read, _ := resizeTree(t, v2)
		p := podOf("u", container("1", "1", "1Ki", "1Ki"))
		p.Status.QOSClass = corev1.PodQOSBurstable
		file, none := "memory.limit_in_bytes", "9223372036854771712"
		if v2 {
			file, none = "memory.max", "max"
		}
		if err := m.Grow(t.Context(), p); err != nil || read(file) != none {
			t.Error(err, read(file))
		}
		if err := m.Settle(t.Context(), p); err != nil || read(file) != "1024" {
			t.Error(err, read(file))
		}
	}
}
