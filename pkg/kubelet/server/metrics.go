package server

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// resourceMetrics shows the CPU, memory and swap of the node, its pods and containers in Prometheus' text format; the
// names are those metrics-server reads.
func (s *Server) resourceMetrics(w http.ResponseWriter, r *http.Request) {
	summary, err := s.cfg.Stats(r.Context(), true)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	if err != nil {
		s.cfg.Log.Error("statistics not collected for /metrics/resource", "err", err)
		summary = &statsapi.Summary{}
	}
	if _, werr := w.Write(resourceText(summary, err != nil)); werr != nil {
		s.cfg.Log.Debug("client left before its answer", "err", werr)
	}
}

// series are the samples of one metric. level is how stable upstream says that its name is; "": as stable as can be.
type series struct {
	name, kind, help, level string
	samples                 []string
}

func (m *series) add(labels string, value float64, ms int64) {
	m.samples = append(m.samples,
		m.name+labels+" "+strconv.FormatFloat(value, 'g', -1, 64)+" "+strconv.FormatInt(ms, 10))
}

func (m *series) cpu(labels string, c *statsapi.CPUStats) {
	if c != nil && c.UsageCoreNanoSeconds != nil {
		m.add(labels, float64(*c.UsageCoreNanoSeconds)/1e9, c.Time.UnixMilli())
	}
}

func (m *series) memory(labels string, c *statsapi.MemoryStats) {
	if c != nil && c.WorkingSetBytes != nil {
		m.add(labels, float64(*c.WorkingSetBytes), c.Time.UnixMilli())
	}
}

func (m *series) swap(labels string, c *statsapi.SwapStats) {
	if c != nil && c.SwapUsageBytes != nil {
		m.add(labels, float64(*c.SwapUsageBytes), c.Time.UnixMilli())
	}
}

// swapLimit writes the sum of used and available swap; without a limit there is nothing to write.
func (m *series) swapLimit(labels string, c *statsapi.SwapStats) {
	if c != nil && c.SwapUsageBytes != nil && c.SwapAvailableBytes != nil {
		m.add(labels, float64(*c.SwapUsageBytes+*c.SwapAvailableBytes), c.Time.UnixMilli())
	}
}

// resourceText renders a summary.
func resourceText(sum *statsapi.Summary, failed bool) []byte {
	containerCPU := &series{name: "container_cpu_usage_seconds_total", kind: "counter",
		help: "Cumulative cpu time consumed by the container in core-seconds"}
	containerMemory := &series{name: "container_memory_working_set_bytes", kind: "gauge",
		help: "Current working set of the container in bytes"}
	started := &series{name: "container_start_time_seconds", kind: "gauge",
		help: "Start time of the container since unix epoch in seconds"}
	nodeCPU := &series{name: "node_cpu_usage_seconds_total", kind: "counter",
		help: "Cumulative cpu time consumed by the node in core-seconds"}
	nodeMemory := &series{name: "node_memory_working_set_bytes", kind: "gauge",
		help: "Current working set of the node in bytes"}
	podCPU := &series{name: "pod_cpu_usage_seconds_total", kind: "counter",
		help: "Cumulative cpu time consumed by the pod in core-seconds"}
	podMemory := &series{name: "pod_memory_working_set_bytes", kind: "gauge",
		help: "Current working set of the pod in bytes"}
	containerSwap := &series{name: "container_swap_usage_bytes", kind: "gauge",
		help: "Bytes of swap that the container uses now", level: "ALPHA"}
	containerSwapLimit := &series{name: "container_swap_limit_bytes", kind: "gauge",
		help: "Bytes of swap that the container may use", level: "ALPHA"}
	nodeSwap := &series{name: "node_swap_usage_bytes", kind: "gauge", help: "Bytes of swap that the node uses now",
		level: "ALPHA"}
	podSwap := &series{name: "pod_swap_usage_bytes", kind: "gauge", help: "Bytes of swap that the pod uses now",
		level: "ALPHA"}
	bad := &series{name: "resource_scrape_error", kind: "gauge",
		help: "1 if there was an error while getting container metrics, 0 otherwise"}

	nodeCPU.cpu("", sum.Node.CPU)
	nodeMemory.memory("", sum.Node.Memory)
	nodeSwap.swap("", sum.Node.Swap)
	for _, p := range sum.Pods {
		of := fmt.Sprintf("namespace=%q,pod=%q", p.PodRef.Namespace, p.PodRef.Name)
		podCPU.cpu("{"+of+"}", p.CPU)
		podMemory.memory("{"+of+"}", p.Memory)
		podSwap.swap("{"+of+"}", p.Swap)
		for _, c := range p.Containers {
			labels := fmt.Sprintf("{container=%q,%s}", c.Name, of)
			containerCPU.cpu(labels, c.CPU)
			containerMemory.memory(labels, c.Memory)
			containerSwap.swap(labels, c.Swap)
			containerSwapLimit.swapLimit(labels, c.Swap)
			if !c.StartTime.IsZero() {
				started.samples = append(started.samples,
					started.name+labels+" "+strconv.FormatFloat(float64(c.StartTime.UnixNano())/1e9, 'g', -1, 64))
			}
		}
	}
	value := "0"
	if failed {
		value = "1"
	}
	bad.samples = []string{bad.name + " " + value}

	var b bytes.Buffer
	for _, m := range []*series{containerCPU, containerMemory, containerSwapLimit, containerSwap, started, nodeCPU,
		nodeMemory, nodeSwap, podCPU, podMemory, podSwap, bad} {
		if len(m.samples) == 0 {
			continue
		}
		slices.Sort(m.samples)
		fmt.Fprintf(&b, "# HELP %s [%s] %s\n# TYPE %s %s\n%s\n", m.name, cmp.Or(m.level, "STABLE"), m.help, m.name,
			m.kind, strings.Join(m.samples, "\n"))
	}
	return b.Bytes()
}
