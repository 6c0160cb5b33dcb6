package placement

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestReasons reads the messages of several versions of the scheduler.
func TestReasons(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]map[string]int{
		"said": nil,
		"0/3 nodes are available: 1 Insufficient cpu, 2 Too many pods.": {"Insufficient cpu": 1, "Too many pods": 2},
		"0/3 nodes are available: 1 node(s) had untolerated taint {a: b}, 2 node(s) had untolerated taint {c: }. preemption: 0/3 nodes are available: 3 x.": {
			"node(s) had untolerated taint(s)": 3},
		"0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 x.": {
			"Insufficient cpu": 3},
		`0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: not eligible.`: {
			`persistentvolumeclaim "data" not found`: 0},
	} {
		if got := reasons(message); !maps.Equal(got, want) {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}

func TestNear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"ssd", "sdd", true}, {"ssd", "hdd", false}, {"ssd", "nvme", false}, {"gpu", "gpus", true}, {"a", "b", false},
		{"production", "prodution", true}, {"production", "staging", false},
	} {
		if got := near(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name corev1.ResourceName
		v    int64
		want string
	}{
		{"cpu", 1500, "1500m"}, {"cpu", 2000, "2"}, {"memory", 0, "0"}, {"memory", 1 << 30, "1Gi"},
		{"memory", 300 << 20, "300Mi"}, {"memory", 1<<30 + 7, "1.0Gi"}, {"memory", 12, "12"}, {"x.y/gpu", 3, "3"},
	} {
		if got := amount(c.name, c.v); got != c.want {
			t.Errorf("%s %d: %s, want %s", c.name, c.v, got, c.want)
		}
	}
}
