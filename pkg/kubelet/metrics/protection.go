package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/kubelet/memoryqos"
)

// protection shows how much memory of pods the kernel does not take away.
type protection struct{ min, low prometheus.Gauge }

func newProtection(r prometheus.Registerer) protection {
	p := protection{
		min: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_memory_qos_node_memory_min_bytes",
			Help: "Bytes of memory of guaranteed pods that the kernel never takes away (memory.min)."}),
		low: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_memory_qos_node_memory_low_bytes",
			Help: "Bytes of memory of burstable pods that the kernel takes away last (memory.low)."})}
	r.MustRegister(p.min, p.low)
	return p
}

// MemoryProtected takes how much is protected.
func (p protection) MemoryProtected(of memoryqos.Protection) {
	p.min.Set(float64(of.Min))
	p.low.Set(float64(of.Low))
}
