package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// devices count what pods are given piece by piece, and how near to each other.
type devices struct {
	registrations  *prometheus.CounterVec
	allocations    *prometheus.HistogramVec
	topologyAsked  prometheus.Counter
	topologyErrors prometheus.Counter
	topologyMillis prometheus.Histogram
	cpuPinned      prometheus.Counter
	cpuErrors      prometheus.Counter
	cpuShared      prometheus.Gauge
	memoryPinned   prometheus.Counter
	memoryErrors   prometheus.Counter
	cpuExclusive   prometheus.Gauge
	draOperations  *prometheus.HistogramVec
	draCalls       *prometheus.HistogramVec
	draClaims      *prometheus.GaugeVec
	// podResources are the requests of the pod-resources API, and errors of it, by what was asked; "total" are all.
	podResources, podResourcesErrors map[string]*prometheus.CounterVec
}

func newDevices(r prometheus.Registerer) *devices {
	m := &devices{
		registrations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_device_plugin_registration_total",
			Help: "Registrations of device plug-ins."}, []string{"resource_name"}),
		allocations: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "kubelet_device_plugin_alloc_duration_seconds",
				Help:    "Seconds that device plug-ins take to say how devices get into a container.",
				Buckets: prometheus.DefBuckets}, []string{"resource_name"}),
		topologyAsked: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_topology_manager_admission_requests_total",
				Help: "Pods for which NUMA nodes were looked for."}),
		topologyErrors: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_topology_manager_admission_errors_total",
				Help: "Pods for which no NUMA nodes were found."}),
		topologyMillis: prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: "kubelet_topology_manager_admission_duration_ms",
				Help:    "Milliseconds that giving a pod what it gets takes.",
				Buckets: prometheus.ExponentialBuckets(.05, 2, 15)}),
	}
	m.cpuPinned = prometheus.NewCounter(
		prometheus.CounterOpts{Name: "kubelet_cpu_manager_pinning_requests_total",
			Help: "Containers that were to get CPUs of their own."})
	m.cpuErrors = prometheus.NewCounter(
		prometheus.CounterOpts{Name: "kubelet_cpu_manager_pinning_errors_total",
			Help: "Containers that were to get CPUs of their own and did not."})
	m.cpuShared = prometheus.NewGauge(
		prometheus.GaugeOpts{Name: "kubelet_cpu_manager_shared_pool_size_millicores",
			Help: "Thousandths of the CPUs that containers share."})
	m.cpuExclusive = prometheus.NewGauge(
		prometheus.GaugeOpts{Name: "kubelet_cpu_manager_exclusive_cpu_allocation_count",
			Help: "CPUs that containers have for themselves."})
	m.memoryPinned = prometheus.NewCounter(
		prometheus.CounterOpts{Name: "kubelet_memory_manager_pinning_requests_total",
			Help: "Containers that were to get memory of chosen NUMA nodes."})
	m.memoryErrors = prometheus.NewCounter(
		prometheus.CounterOpts{Name: "kubelet_memory_manager_pinning_errors_total",
			Help: "Containers that were to get memory of chosen NUMA nodes and did not."})
	r.MustRegister(m.cpuPinned, m.cpuErrors, m.cpuShared, m.cpuExclusive, m.memoryPinned, m.memoryErrors)
	draSeconds := prometheus.ExponentialBuckets(.1, 1.8, 10)
	m.draOperations = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dra_operations_duration_seconds",
		Help: "Seconds that preparing or unpreparing the claims of a pod takes.", Buckets: draSeconds},
		[]string{"operation_name", "is_error"})
	m.draCalls = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "dra_grpc_operations_duration_seconds",
		Help: "Seconds that a call of a DRA driver takes.", Buckets: draSeconds},
		[]string{"driver_name", "method_name", "grpc_status_code"})
	m.draClaims = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "dra_resource_claims_in_use",
		Help: "Claims that pods of the node use, by driver; <any> are all."}, []string{"driver_name"})
	r.MustRegister(m.draOperations, m.draCalls, m.draClaims)
	m.podResources, m.podResourcesErrors = map[string]*prometheus.CounterVec{}, map[string]*prometheus.CounterVec{}
	asked := func(kind, what string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "kubelet_pod_resources_endpoint_" + kind + "_" + what,
				Help: "Requests of the pod-resources API, or those that failed, by what was asked."},
			[]string{"server_api_version"})
		r.MustRegister(c)
		return c
	}
	for _, what := range []string{"list", "get", "get_allocatable"} {
		m.podResources[what], m.podResourcesErrors[what] = asked("requests", what), asked("errors", what)
	}
	m.podResources["total"] = asked("requests", "total")
	r.MustRegister(m.registrations, m.allocations, m.topologyAsked, m.topologyErrors, m.topologyMillis)
	return m
}

// PluginRegistered counts the registration of a device plug-in.
func (m *devices) PluginRegistered(resource string) {
	m.registrations.WithLabelValues(resource).Inc()
}

// DevicesAllocated tells how long a device plug-in took to give devices.
func (m *devices) DevicesAllocated(resource string, took time.Duration) {
	m.allocations.WithLabelValues(resource).Observe(took.Seconds())
}

// TopologyAdmitted counts a pod for which NUMA nodes were looked for; refused: there were none.
func (m *devices) TopologyAdmitted(took time.Duration, refused bool) {
	m.topologyAsked.Inc()
	m.topologyMillis.Observe(float64(took.Microseconds()) / 1000)
	if refused {
		m.topologyErrors.Inc()
	}
}

// PodResourcesAsked counts a request of the pod-resources API: list, get or get_allocatable.
func (m *devices) PodResourcesAsked(what string, failed bool) {
	for _, c := range []*prometheus.CounterVec{m.podResources["total"], m.podResources[what]} {
		c.WithLabelValues("v1").Inc()
	}
	if failed {
		m.podResourcesErrors[what].WithLabelValues("v1").Inc()
	}
}

// DRAOperation tells how long preparing or unpreparing the claims of a pod took.
func (m *devices) DRAOperation(name string, took time.Duration, err error) {
	m.draOperations.WithLabelValues(name, strconv.FormatBool(err != nil)).Observe(took.Seconds())
}

// DRACall tells how long a call of a DRA driver took.
func (m *devices) DRACall(driver, method, code string, took time.Duration) {
	m.draCalls.WithLabelValues(driver, method, code).Observe(took.Seconds())
}

// DRAClaims tells how many claims are in use, by driver and ("<any>") in all.
func (m *devices) DRAClaims(byDriver map[string]int) {
	m.draClaims.Reset()
	for name, n := range byDriver {
		m.draClaims.WithLabelValues(name).Set(float64(n))
	}
}

// CPUsPinned counts a container that was to get CPUs of its own.
func (m *devices) CPUsPinned(err error) {
	m.cpuPinned.Inc()
	if err != nil {
		m.cpuErrors.Inc()
	}
}

// MemoryPinned counts a container that was to get memory of chosen NUMA nodes.
func (m *devices) MemoryPinned(err error) {
	m.memoryPinned.Inc()
	if err != nil {
		m.memoryErrors.Inc()
	}
}

// CPUs tells how many CPUs are shared, and how many containers have for themselves.
func (m *devices) CPUs(shared, exclusive int) {
	m.cpuShared.Set(float64(shared) * 1000)
	m.cpuExclusive.Set(float64(exclusive))
}
