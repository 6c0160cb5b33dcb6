package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// timings are how long the steps of pods take, and those of what is done for them.
type timings struct {
	workerStart  prometheus.Histogram
	worker       *prometheus.HistogramVec
	statusSync   prometheus.Histogram
	podSLI       prometheus.Histogram
	podTotal     prometheus.Histogram
	perPod       prometheus.Histogram
	sandbox      *prometheus.HistogramVec
	sandboxError *prometheus.CounterVec
	users        prometheus.Counter
	userErrors   prometheus.Counter
	cgroups      *prometheus.HistogramVec
	pull         *prometheus.HistogramVec
}

// startBuckets are those of the starts of pods.
var startBuckets = []float64{0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200,
	1800, 2700, 3600}

func newTimings(r prometheus.Registerer) *timings {
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	by := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &timings{
		workerStart: histogram("kubelet_pod_worker_start_duration_seconds",
			"Seconds from the kubelet's first sight of a pod to its worker's first step.", prometheus.DefBuckets),
		worker: by("kubelet_pod_worker_duration_seconds",
			"Seconds that one sync of a pod takes; operation_type: create, update, sync or kill.",
			prometheus.DefBuckets, "operation_type"),
		statusSync: histogram("kubelet_pod_status_sync_duration_seconds",
			"Seconds from a change of a pod's status to its being stored.",
			[]float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 20, 30, 45, 60}),
		podSLI: histogram("kubelet_pod_start_sli_duration_seconds",
			"Seconds from a pod's creation to its running, without those of its images and init containers.",
			startBuckets),
		podTotal: histogram("kubelet_pod_start_total_duration_seconds", "Seconds from a pod's creation to its running.",
			startBuckets),
		perPod: histogram("kubelet_containers_per_pod_count", "Containers of a pod that the kubelet takes.",
			prometheus.ExponentialBuckets(1, 2, 5)),
		sandbox: by("kubelet_run_podsandbox_duration_seconds",
			"Seconds that the making of a pod's sandbox takes, by the runtime's handler.", prometheus.DefBuckets,
			"runtime_handler"),
		sandboxError: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_run_podsandbox_errors_total",
			Help: "Sandboxes that could not be made, by the runtime's handler."}, []string{"runtime_handler"}),
		users: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_started_user_namespaced_pods_total",
				Help: "Starts of pods with users of their own."}),
		userErrors: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "kubelet_started_user_namespaced_pods_errors_total",
				Help: "Starts of pods with users of their own that failed."}),
		cgroups: by("kubelet_cgroup_manager_duration_seconds",
			"Seconds that work on cgroups takes; operation_type: create, update or destroy.", prometheus.DefBuckets,
			"operation_type"),
		pull: by("kubelet_image_pull_duration_seconds", "Seconds that a pull of an image takes, by the image's size.",
			[]float64{1, 5, 10, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600},
			"image_size_in_bytes"),
	}
	r.MustRegister(m.workerStart, m.worker, m.statusSync, m.podSLI, m.podTotal, m.perPod, m.sandbox, m.sandboxError,
		m.users, m.userErrors, m.cgroups, m.pull)
	return m
}

// WorkerStarted takes how long a pod waited for its worker's first step.
func (m *timings) WorkerStarted(pod *corev1.Pod, took time.Duration) {
	m.workerStart.Observe(took.Seconds())
	n := 0
	for range runtime.Containers(pod) {
		n++
	}
	m.perPod.Observe(float64(n))
}

// WorkerStep takes how long one step of a pod's worker took.
func (m *timings) WorkerStep(operation string, took time.Duration) {
	m.worker.WithLabelValues(operation).Observe(took.Seconds())
}

// StatusSynced takes how long a change of a pod's status took to be stored.
func (m *timings) StatusSynced(took time.Duration) {
	m.statusSync.Observe(took.Seconds())
}

// CgroupWork takes how long work on a cgroup took.
func (m *timings) CgroupWork(operation string, took time.Duration) {
	m.cgroups.WithLabelValues(operation).Observe(took.Seconds())
}

// ImagePulled takes how long the pull of an image of so many bytes took.
func (m *timings) ImagePulled(size uint64, took time.Duration) {
	m.pull.WithLabelValues(sizeOf(size)).Observe(took.Seconds())
}

// sizeOf is the label of an image's size.
func sizeOf(bytes uint64) string {
	const mega = 1 << 20
	for _, b := range []struct {
		below uint64
		label string
	}{{10 * mega, "0-10MB"}, {100 * mega, "10MB-100MB"}, {500 * mega, "100MB-500MB"}, {1024 * mega, "500MB-1GB"},
		{5 * 1024 * mega, "1GB-5GB"}, {10 * 1024 * mega, "5GB-10GB"},
		{20 * 1024 * mega, "10GB-20GB"}, {30 * 1024 * mega, "20GB-30GB"}, {40 * 1024 * mega, "30GB-40GB"},
		{60 * 1024 * mega, "40GB-60GB"}, {100 * 1024 * mega, "60GB-100GB"}} {
		if bytes < b.below {
			return b.label
		}
	}
	return "GT100GB"
}
