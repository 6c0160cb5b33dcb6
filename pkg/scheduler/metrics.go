package scheduler

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/profile"
)

// Metrics are what the scheduler counts, under upstream's names, with its labels and buckets. A nil *Metrics counts
// nothing.
type Metrics struct {
	attempts    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	algorithm   prometheus.Histogram
	points      *prometheus.HistogramVec
	podAttempts prometheus.Histogram
	sli         *prometheus.HistogramVec
	preemptions prometheus.Counter
	victims     prometheus.Histogram
	binding     prometheus.Gauge
	incoming    *prometheus.CounterVec
	entities    *prometheus.CounterVec
	permit      *prometheus.HistogramVec
}

// NewMetrics registers the figures.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_schedule_attempts_total",
			Help: "Number of attempts to schedule pods, by the result."}, []string{"result", "profile"}),
		duration: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "scheduler_scheduling_attempt_duration_seconds",
				Help:    "Scheduling attempt latency in seconds, binding included.",
				Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, []string{"result", "profile"}),
		algorithm: prometheus.NewHistogram(
			prometheus.HistogramOpts{Name: "scheduler_scheduling_algorithm_duration_seconds",
				Help:    "Seconds of a search for a node, successful or not: all of PreFilter, Filter, PreScore and Score.",
				Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
		points: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "scheduler_framework_extension_point_duration_seconds",
				Help:    "Seconds that the plug-ins of an extension point took for a pod, by the status of their answer.",
				Buckets: prometheus.ExponentialBuckets(0.0001, 2, 12)},
			[]string{"extension_point", "status", "profile"}),
		podAttempts: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "scheduler_pod_scheduling_attempts",
			Help:    "Number of attempts that it took to schedule a pod.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 5)}),
		sli: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "scheduler_pod_scheduling_sli_duration_seconds",
			Help:    "Seconds from a pod's first arrival among those to be tried until it was bound, by the number of attempts.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 20)}, []string{"attempts"}),
		preemptions: prometheus.NewCounter(prometheus.CounterOpts{Name: "scheduler_preemption_attempts_total",
			Help: "Number of searches for victims, successful or not."}),
		victims: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "scheduler_preemption_victims",
			Help: "Number of victims chosen for a pod.", Buckets: prometheus.ExponentialBuckets(1, 2, 7)}),
	}
	m.incoming = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_queue_incoming_pods_total",
		Help: "Number of pods that were added to a queue, by queue and event."},
		[]string{"queue", "event"})
	m.entities = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scheduler_queue_incoming_entities_total",
		Help: "Number of entities (pods) that were added to a queue, by queue, event and type."},
		[]string{"queue", "event", "type"})
	m.permit = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "scheduler_permit_wait_duration_seconds",
		Help:    "Seconds that a pod waited for Permit plug-ins, by the result.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}, []string{"result"})
	goroutines := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "scheduler_goroutines",
		Help: "Number of running goroutines, by what they do."}, []string{"operation"})
	m.binding = goroutines.WithLabelValues("binding")
	r.MustRegister(m.attempts, m.duration, m.algorithm, m.points, m.podAttempts, m.sli, m.preemptions, m.victims,
		m.incoming, m.entities, m.permit, goroutines)
	return m
}

// attempt counts a try, from the queue to its result.
func (m *Metrics) attempt(result, profile string, took time.Duration) {
	if m == nil {
		return
	}
	m.attempts.WithLabelValues(result, profile).Inc()
	m.duration.WithLabelValues(result, profile).Observe(took.Seconds())
}

// decided counts the search for a node.
func (m *Metrics) decided(took time.Duration) {
	if m != nil {
		m.algorithm.Observe(took.Seconds())
	}
}

// maxAttemptsLabel bounds the values of the label "attempts".
const maxAttemptsLabel = 15

// scheduled counts a pod that was bound at its nth attempt.
func (m *Metrics) scheduled(n int, took time.Duration) {
	if m == nil {
		return
	}
	label := strconv.Itoa(n)
	if n >= maxAttemptsLabel {
		label = strconv.Itoa(maxAttemptsLabel) + "+"
	}
	m.podAttempts.Observe(float64(n))
	m.sli.WithLabelValues(label).Observe(took.Seconds())
}

// point counts a run of an extension point's plug-ins.
func (m *Metrics) point(name, profile string, st *framework.Status, took time.Duration) {
	if m == nil {
		return
	}
	m.points.WithLabelValues(name, codeOf(st).String(), profile).Observe(took.Seconds())
}

// codeOf is a status' code; nil is success.
func codeOf(st *framework.Status) framework.Code {
	if st == nil {
		return framework.Success
	}
	return st.Code
}

// Incoming counts a pod that came into a queue, and what brought it there.
func (m *Metrics) Incoming(queue, event string) {
	if m != nil {
		m.incoming.WithLabelValues(queue, event).Inc()
		m.entities.WithLabelValues(queue, event, "pod").Inc()
	}
}

// waited counts a pod's wait for Permit plug-ins.
func (m *Metrics) waited(st *framework.Status, took time.Duration) {
	if m != nil {
		m.permit.WithLabelValues(codeOf(st).String()).Observe(took.Seconds())
	}
}

// bindings counts goroutines that bind: by is 1 when one begins and -1 when it ends.
func (m *Metrics) bindings(by float64) {
	if m != nil {
		m.binding.Add(by)
	}
}

// Preempting counts a search for victims.
func (m *Metrics) Preempting() {
	if m != nil {
		m.preemptions.Inc()
	}
}

// Victims counts the victims that were chosen for a pod.
func (m *Metrics) Victims(n int) {
	if m != nil {
		m.victims.Observe(float64(n))
	}
}

// timed runs the plug-ins of an extension point and counts how long they took.
func (s *Scheduler) timed(point string, p *profile.Profile, run func() *framework.Status) *framework.Status {
	begun := s.Now()
	st := run()
	s.Metrics.point(point, p.SchedulerName, st, s.Now().Sub(begun))
	return st
}
