package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/memoryqos"
)

// TestProtectedMemory: the requests of pods are protected in their cgroups, in that of their class, and in that of all
// pods; with no policy, or on version 1, nothing is left of an earlier kubelet's protection or none is written.
func TestProtectedMemory(t *testing.T) {
	t.Parallel()
	guaranteed, burstable := podOf("g", container("1", "1", "50Mi", "50Mi")), podOf("b", container("", "", "20Mi", ""))
	const g, b = "52428800", "20971520"
	for name, c := range map[string]struct {
		v2      bool
		memory  memoryqos.QoS
		want    map[string]string // by path and file
		reports memoryqos.Protection
	}{
		"protected": {true, memoryqos.QoS{Protect: true}, map[string]string{
			"kubepods/memory.min": "73400320", "kubepods/memory.low": b,
			"kubepods/burstable/memory.min": "0", "kubepods/burstable/memory.low": b,
			"kubepods/podg/memory.min": g, "kubepods/podg/memory.low": "0",
			"kubepods/burstable/podb/memory.min": "0", "kubepods/burstable/podb/memory.low": b,
			"kubepods/podg/memory.high": "max",
		}, memoryqos.Protection{Min: 50 << 20, Low: 20 << 20}},
		"default": {true, memoryqos.QoS{}, map[string]string{
			"kubepods/memory.min": "0", "kubepods/memory.low": "0", "kubepods/burstable/memory.low": "0",
			"kubepods/podg/memory.min": "0", "kubepods/burstable/podb/memory.low": "0",
			"kubepods/burstable/podb/memory.high": "max",
		}, memoryqos.Protection{}},
		"v1": {false, memoryqos.QoS{Protect: true}, map[string]string{
			"kubepods/memory.min": "odd", "kubepods/podg/memory.min": "odd",
		}, memoryqos.Protection{Min: 50 << 20, Low: 20 << 20}},
	} {
		m, _ := fakeTree(t, c.v2)
		m.cfg.Memory = c.memory
		var reports memoryqos.Protection
		m.cfg.Protected = func(p memoryqos.Protection) { reports = p }
		at := func(file string) string { return m.tree.file("memory", filepath.Dir(file), filepath.Base(file)) }
		for _, dir := range []string{"kubepods", "kubepods/burstable", "kubepods/besteffort", "kubepods/podg",
			"kubepods/burstable/podb"} {
			for _, file := range []string{"memory.min", "memory.low", "memory.high"} {
				path := at(filepath.Join(dir, file))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("odd"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, p := range []*corev1.Pod{guaranteed, burstable} {
			if err := m.Prepare(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.UpdateQoS(t.Context(), []*corev1.Pod{guaranteed, burstable}); err != nil {
			t.Fatal(err)
		}
		for file, want := range c.want {
			if got, err := os.ReadFile(at(file)); err != nil || string(got) != want {
				t.Errorf("%s: %s is %q (%v), want %q", name, file, got, err, want)
			}
		}
		if reports != c.reports {
			t.Errorf("%s: %+v is reported", name, reports)
		}
	}
}

// TestThrottledPod: a pod with a limit of its own is throttled as a whole.
func TestThrottledPod(t *testing.T) {
	t.Parallel()
	c := Config{Memory: memoryqos.QoS{Factor: 0.5, Allocatable: 1 << 30}}
	pod := podOf("b", container("", "", "20Mi", ""))
	if v := c.forPod(pod); v.high != memoryqos.Unlimited {
		t.Errorf("without a limit of its own: %d", v.high)
	}
	pod.Spec.Resources = &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("40Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("80Mi")}}
	if v := c.forPod(pod); v.high != 60<<20 {
		t.Errorf("with a limit of its own: %d", v.high)
	}
}
