// Package metrics counts what the kubelet does, under upstream's names
// (https://kubernetes.io/docs/reference/instrumentation/metrics/).
package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Metrics counts. The subjects that it embeds have files, fields and methods of their own. Methods are safe for
// concurrent use, except Relisted and the steps of startup: their callers make one call after the other.
type Metrics struct {
	pods        prometheus.Gauge
	containers  *prometheus.GaugeVec
	relist      prometheus.Histogram
	seen        prometheus.Gauge
	startedPods prometheus.Counter
	podErrors   prometheus.Counter
	started     *prometheus.CounterVec
	startErrors *prometheus.CounterVec
	preemptions *prometheus.CounterVec
	evictions   *prometheus.CounterVec
	evictionAge *prometheus.HistogramVec
	restarted   *prometheus.CounterVec
	orphans     prometheus.Counter
	collected   *prometheus.CounterVec
	podStart    prometheus.Histogram
	shutBegan   prometheus.Gauge
	shutOver    prometheus.Gauge
	interval    prometheus.Histogram
	// listed is when the last list of the runtime began. Only Relisted, which is not called twice at a time, uses it.
	listed     time.Time
	operations *prometheus.CounterVec
	opErrors   *prometheus.CounterVec
	opSeconds  *prometheus.HistogramVec
	fallbacks  prometheus.Counter
	terminated *prometheus.CounterVec
	*resizes
	*devices
	*timings
	protection
	admissions
	podsAPI
	*startup
	*images
	*volumes
}

// New registers at r. With nil the metrics are counted in a registry that is not served.
func New(r prometheus.Registerer) *Metrics {
	if r == nil {
		r = prometheus.NewRegistry()
	}
	m := &Metrics{
		pods: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_running_pods", Help: "Pods that have a ready sandbox."}),
		containers: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "kubelet_running_containers",
				Help: "Containers that the runtime has, by state."}, []string{"container_state"}),
		relist: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kubelet_pleg_relist_duration_seconds",
			Help: "Seconds that a list of the runtime's pods takes.", Buckets: prometheus.DefBuckets}),
		interval: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kubelet_pleg_relist_interval_seconds",
			Help: "Seconds between the lists of the runtime's pods.", Buckets: prometheus.DefBuckets}),
		shutBegan: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_graceful_shutdown_start_time_seconds",
				Help: "When the last graceful shutdown began, as Unix time."}),
		shutOver: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_graceful_shutdown_end_time_seconds",
				Help: "When the last graceful shutdown ended, as Unix time."}),
		podStart: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "kubelet_pod_start_duration_seconds",
			Help:    "Seconds from the kubelet's first sight of a pod to its running.",
			Buckets: startBuckets}),
		seen: prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_pleg_last_seen_seconds",
				Help: "When the runtime's pods were last listed, as Unix time."}),
		startedPods: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_started_pods_total", Help: "Starts of pods: sandboxes asked for."}),
		podErrors: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_started_pods_errors_total", Help: "Starts of pods that failed."}),
		started: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "kubelet_started_containers_total", Help: "Starts of containers."},
			[]string{"container_type"}),
		startErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_started_containers_errors_total",
			Help: "Starts of containers that failed, by the reason in the container's status."},
			[]string{"container_type", "code"}),
		preemptions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_preemptions",
			Help: "Pods that lost their place to a critical one, by the resource that was missing."},
			[]string{"preemption_signal"}),
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_evictions",
			Help: "Pods evicted, by the signal of what they used too much of."}, []string{"eviction_signal"}),
		evictionAge: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kubelet_eviction_stats_age_seconds",
			Help: "Seconds from an observation of the node to the eviction that it led to, by the signal of what ran short.", Buckets: prometheus.DefBuckets}, []string{"eviction_signal"}),
		orphans: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_orphaned_runtime_pods_total",
			Help: "Pods found in the container runtime that no source had told of: they were deleted while the kubelet was down."}),
		restarted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_restarted_pods_total",
			Help: "Pods that were removed and came back with the same UID; static: true or empty."},
			[]string{"static"}),
		collected: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_image_garbage_collected_total",
			Help: "Unused images removed; reason: space or age."}, []string{"reason"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_runtime_operations_total",
			Help: "Calls of the container runtime."}, []string{"operation_type"}),
		opErrors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_runtime_operations_errors_total",
			Help: "Calls of the container runtime that failed."}, []string{"operation_type"}),
		opSeconds: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "kubelet_runtime_operations_duration_seconds",
				Help:    "Seconds that calls of the container runtime take.",
				Buckets: prometheus.ExponentialBuckets(.005, 2.5, 14)}, []string{"operation_type"}),
		fallbacks: prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_lifecycle_handler_http_fallbacks_total",
			Help: "HTTPS lifecycle hooks whose server speaks no TLS and that were told by HTTP."}),
		terminated: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_terminated_containers_total",
			Help: "Containers that have ended, by their exit code."}, []string{"container_type", "exit_code"}),
		resizes: newResizes(r),
		devices: newDevices(r),
		timings: newTimings(r), protection: newProtection(r), admissions: newAdmissions(r), podsAPI: newPodsAPI(r),
		startup: newStartup(r),
		images:  newImages(r),
		volumes: newVolumes(r),
	}
	r.MustRegister(m.pods, m.containers, m.relist, m.seen, m.startedPods, m.podErrors, m.started, m.startErrors,
		m.preemptions,
		m.evictions, m.evictionAge, m.orphans, m.restarted, m.collected, m.podStart, m.shutBegan, m.shutOver,
		m.interval, m.operations, m.opErrors, m.opSeconds, m.fallbacks, m.terminated)
	return m
}

// Relisted takes what a list of the runtime showed, or why it failed.
func (m *Metrics) Relisted(begun time.Time, took time.Duration, pods []*runtime.PodStatus, err error) {
	m.relist.Observe(took.Seconds())
	if !m.listed.IsZero() {
		m.interval.Observe(begun.Sub(m.listed).Seconds())
	}
	m.listed = begun
	if err != nil {
		return
	}
	m.seen.Set(float64(begun.Unix()))
	// Every state is set, even one without containers: a state that no container is in any more must not keep its last
	// figure.
	ready, states := 0, map[runtime.State]int{runtime.StateCreated: 0, runtime.StateRunning: 0, runtime.StateExited: 0,
		runtime.StateUnknown: 0}
	for _, p := range pods {
		if p.SandboxReady() {
			ready++
		}
		for i := range p.Containers {
			states[p.Containers[i].State]++
		}
	}
	m.pods.Set(float64(ready))
	for state, n := range states {
		m.containers.WithLabelValues(string(state)).Set(float64(n))
	}
}

// StartedPod counts the making of a pod's sandbox by one of the runtime's handlers.
func (m *Metrics) StartedPod(pod *corev1.Pod, handler string, took time.Duration, err error) {
	own := runtime.OwnUsers(pod)
	m.startedPods.Inc()
	m.sandbox.WithLabelValues(handler).Observe(took.Seconds())
	if own {
		m.users.Inc()
	}
	if err == nil {
		return
	}
	m.podErrors.Inc()
	m.sandboxError.WithLabelValues(handler).Inc()
	if own {
		m.userErrors.Inc()
	}
}

// StartedContainer counts a start; code is why it failed, "" if it did not.
func (m *Metrics) StartedContainer(kind runtime.Kind, code string) {
	of := containerType(kind)
	m.started.WithLabelValues(of).Inc()
	if code != "" {
		m.startErrors.WithLabelValues(of, code).Inc()
	}
}

// Terminated counts a container that has ended.
func (m *Metrics) Terminated(kind runtime.Kind, exit int32) {
	m.terminated.WithLabelValues(containerType(kind), strconv.Itoa(int(exit))).Inc()
}

// HookFellBack counts an HTTPS hook that was told by HTTP.
func (m *Metrics) HookFellBack() {
	m.fallbacks.Inc()
}

// Preempted counts a pod that lost its place.
func (m *Metrics) Preempted(lacked corev1.ResourceName) {
	m.preemptions.WithLabelValues(string(lacked)).Inc()
}

// Evicted counts a pod that used too much of what the signal names.
func (m *Metrics) Evicted(signal string) {
	m.evictions.WithLabelValues(signal).Inc()
}

// EvictionAge takes how old the observations were that led to an eviction.
func (m *Metrics) EvictionAge(signal string, age time.Duration) {
	m.evictionAge.WithLabelValues(signal).Observe(age.Seconds())
}

// Orphaned counts a pod in the runtime that no source knows.
func (m *Metrics) Orphaned() {
	m.orphans.Inc()
}

// ImageRemoved counts an unused image that was removed.
func (m *Metrics) ImageRemoved(reason string) {
	m.collected.WithLabelValues(reason).Inc()
}

// ShutdownBegan takes the time at which a graceful shutdown began.
func (m *Metrics) ShutdownBegan(at time.Time) {
	m.shutBegan.Set(float64(at.Unix()))
}

// ShutdownOver takes the time of its end.
func (m *Metrics) ShutdownOver(at time.Time) {
	m.shutOver.Set(float64(at.Unix()))
}

// PodRunning takes how long a pod took to run: from the kubelet's first sight of it, from its creation (0: not known),
// and how much of that was for its images and init containers.
func (m *Metrics) PodRunning(seen, created, images time.Duration) {
	m.podStart.Observe(seen.Seconds())
	if created > 0 {
		m.podTotal.Observe(created.Seconds())
		m.podSLI.Observe(max(created-images, 0).Seconds())
	}
}

// RestartedPod counts a pod that came back.
func (m *Metrics) RestartedPod(static bool) {
	label := ""
	if static {
		label = "true"
	}
	m.restarted.WithLabelValues(label).Inc()
}

// Called counts a call of the runtime.
func (m *Metrics) Called(operation string, took time.Duration, err error) {
	m.operations.WithLabelValues(operation).Inc()
	m.opSeconds.WithLabelValues(operation).Observe(took.Seconds())
	if err != nil {
		m.opErrors.WithLabelValues(operation).Inc()
	}
}

// containerType is the kind as metrics name it.
func containerType(kind runtime.Kind) string {
	switch kind {
	case runtime.Init:
		return "init_container"
	case runtime.Ephemeral:
		return "ephemeral_container"
	default:
		return "container"
	}
}
