package metrics

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// resizes count the in-place resizes of pods.
type resizes struct {
	requested  *prometheus.CounterVec
	infeasible *prometheus.CounterVec
	accepted   *prometheus.CounterVec
	pending    *prometheus.GaugeVec
	inProgress prometheus.Gauge
	took       *prometheus.HistogramVec
	deferred   *prometheus.HistogramVec

	mu     sync.Mutex
	states map[types.UID]resizeState
}

// resizeState is that of one pod whose resize is not done.
type resizeState struct {
	pending    string
	bucket     string
	inProgress bool
}

func newResizes(r prometheus.Registerer) *resizes {
	m := &resizes{
		requested: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_container_requested_resizes_total",
			Help: "Resizes asked for, by container, resource, whether of its request or its limit, and what becomes of that."}, []string{"resource", "requirement", "operation"}),
		infeasible: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_pod_infeasible_resizes_total",
			Help: "Resizes of pods that can never be here."}, []string{"reason_detail"}),
		accepted: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kubelet_pod_deferred_accepted_resizes_total",
			Help: "Resizes that were granted after they had been deferred."}, []string{"retry_trigger"}),
		pending: prometheus.NewGaugeVec(
			prometheus.GaugeOpts{Name: "kubelet_pod_pending_resizes", Help: "Pods that do not have what they ask for."},
			[]string{"priority_bucket", "reason"}),
		deferred: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "kubelet_pod_deferred_resize_duration_seconds",
			Help:    "Seconds that a resize was deferred, by what ended the wait: accepted, reverted or terminated.",
			Buckets: []float64{5, 10, 15, 20, 30, 45, 60, 90, 120, 150, 180, 300, 600, 1200, 1800, 3600}},
			[]string{"priority_bucket", "resolution"}),
		inProgress: prometheus.NewGauge(prometheus.GaugeOpts{Name: "kubelet_pod_in_progress_resizes",
			Help: "Pods whose containers do not have what the pods have by now."}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "kubelet_pod_resize_duration_milliseconds",
			Help:    "Milliseconds that giving a pod's containers other resources takes.",
			Buckets: prometheus.ExponentialBuckets(10, 2, 16)}, []string{"success"}),
		states: map[types.UID]resizeState{},
	}
	r.MustRegister(m.requested, m.infeasible, m.accepted, m.pending, m.inProgress, m.took, m.deferred)
	return m
}

// Requested counts what containers ask for in place of what they have.
func (m *resizes) Requested(has, asks runtime.Resources) {
	for _, name := range slices.Sorted(maps.Keys(asks.Containers)) {
		was, now := has.Containers[name], asks.Containers[name]
		m.changes("requests", was.Requests, now.Requests)
		m.changes("limits", was.Limits, now.Limits)
	}
}

func (m *resizes) changes(requirement string, was, now corev1.ResourceList) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		had, before := was[name]
		has, after := now[name]
		operation := ""
		switch {
		case before && !after:
			operation = "remove"
		case after && !before:
			operation = "add"
		case has.Cmp(had) > 0:
			operation = "increase"
		case has.Cmp(had) < 0:
			operation = "decrease"
		}
		if operation != "" {
			m.requested.WithLabelValues(string(name), requirement, operation).Inc()
		}
	}
}

// Infeasible counts a resize that can never be, of a static pod or of one that asks for more than the node has.
func (m *resizes) Infeasible(static bool) {
	detail := "insufficient_node_allocatable"
	if static {
		detail = "static_pod"
	}
	m.infeasible.WithLabelValues(detail).Inc()
}

// Accepted counts a resize that was deferred before; trigger is what let it be.
func (m *resizes) Accepted(trigger string) {
	m.accepted.WithLabelValues(trigger).Inc()
}

// States takes the state of a pod's resize.
func (m *resizes) States(pod *corev1.Pod, pending string, inProgress bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	uid := pod.UID
	now, was := resizeState{strings.ToLower(pending), priorityBucket(pod), inProgress}, m.states[uid]
	if now == was {
		return
	}
	if delete(m.states, uid); now.pending != "" || now.inProgress {
		m.states[uid] = now
	}
	doing := 0.0
	m.pending.Reset()
	for _, s := range m.states {
		if s.pending != "" {
			m.pending.WithLabelValues(s.bucket, s.pending).Inc()
		}
		if s.inProgress {
			doing++
		}
	}
	m.inProgress.Set(doing)
}

// Resolved takes how long a resize was deferred, and how that ended.
func (m *resizes) Resolved(pod *corev1.Pod, resolution string, waited time.Duration) {
	m.deferred.WithLabelValues(priorityBucket(pod), resolution).Observe(waited.Seconds())
}

// priorityBucket is the class of a pod's priority, in upstream's words.
func priorityBucket(pod *corev1.Pod) string {
	priority := int32(0)
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	switch {
	case priority >= runtime.SystemCriticalPriority:
		return "system-critical"
	case priority >= 100_000:
		return "high"
	case priority >= 1:
		return "medium"
	case priority == 0:
		return "normal"
	case priority > -1000:
		return "low"
	}
	return "very-low"
}

// Done takes how long a resize took that was done, or could not be.
func (m *resizes) Done(took time.Duration, err error) {
	success := "true"
	if err != nil {
		success = "false"
	}
	m.took.WithLabelValues(success).Observe(float64(took) / float64(time.Millisecond))
}
