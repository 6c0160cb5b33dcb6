package server

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/referencetest"
)

// TestResourceSwap: swap has upstream's names and its own level; who is bound to nothing has no limit, and who is not
// measured nothing.
func TestResourceSwap(t *testing.T) {
	t.Parallel()
	swap := func(used uint64, left *uint64) *statsapi.SwapStats {
		return &statsapi.SwapStats{Time: metav1.NewTime(time.UnixMilli(1234)), SwapUsageBytes: &used,
			SwapAvailableBytes: left}
	}
	text := string(resourceText(&statsapi.Summary{Node: statsapi.NodeStats{Swap: swap(70, new(uint64(30)))},
		Pods: []statsapi.PodStats{{PodRef: statsapi.PodReference{Name: "p", Namespace: "ns"}, Swap: swap(9, nil),
			Containers: []statsapi.ContainerStats{{Name: "bound", Swap: swap(5, new(uint64(2)))},
				{Name: "free", Swap: swap(4, nil)}, {Name: "new"}}}}}, false))
	for name, want := range map[string]string{
		"node_swap_usage_bytes": "node_swap_usage_bytes 70 1234\n",
		"pod_swap_usage_bytes":  `pod_swap_usage_bytes{namespace="ns",pod="p"} 9 1234` + "\n",
		"container_swap_limit_bytes": `container_swap_limit_bytes{container="bound",namespace="ns",pod="p"} 7 1234` +
			"\n",
		"container_swap_usage_bytes": `container_swap_usage_bytes{container="bound",namespace="ns",pod="p"} 5 1234` +
			"\n" + `container_swap_usage_bytes{container="free",namespace="ns",pod="p"} 4 1234` + "\n",
	} {
		_, rest, _ := strings.Cut(text, "# HELP "+name+" [ALPHA] ")
		_, rest, _ = strings.Cut(rest, "\n")
		samples, found := strings.CutPrefix(rest, "# TYPE "+name+" gauge\n")
		samples, _, _ = strings.Cut(samples, "# HELP")
		if !found || samples != want {
			t.Errorf("%s: %q, want %q, in\n%s", name, samples, want, text)
		}
	}
	if !strings.Contains(text, "# HELP resource_scrape_error [STABLE] ") ||
		strings.Contains(string(resourceText(&statsapi.Summary{}, false)), "swap") {
		t.Errorf("%s", text)
	}
}

// TestReferenceMetrics: docs/reference has the metrics of /metrics/resource as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	n := new(uint64(1))
	cpu, memory := &statsapi.CPUStats{UsageCoreNanoSeconds: n}, &statsapi.MemoryStats{WorkingSetBytes: n}
	swap := &statsapi.SwapStats{SwapUsageBytes: n, SwapAvailableBytes: n}
	text := resourceText(&statsapi.Summary{Node: statsapi.NodeStats{CPU: cpu, Memory: memory, Swap: swap},
		Pods: []statsapi.PodStats{{PodRef: statsapi.PodReference{Name: "p", Namespace: "ns"}, CPU: cpu, Memory: memory,
			Swap: swap, Containers: []statsapi.ContainerStats{{Name: "c", StartTime: metav1.NewTime(time.Unix(1, 0)),
				CPU: cpu, Memory: memory, Swap: swap}}}}}, false)
	referencetest.MetricsPage(t, "kubelet-resource", "Metrics for metrics-server",
		"At `/metrics/resource` of the kubelet.", "./pkg/kubelet/server", referencetest.Exposed(string(text)))
}
