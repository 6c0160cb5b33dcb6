package job

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"

	"bonsai/api/batch"
	"bonsai/pkg/controller"
)

// metrics are upstream's, by its names and labels.
type metrics struct {
	syncs        *prometheus.CounterVec
	duration     *prometheus.HistogramVec
	finished     *prometheus.CounterVec
	podsFinished *prometheus.CounterVec
	podsCreated  *prometheus.CounterVec
	byPolicy     *prometheus.CounterVec
	finalizers   *prometheus.CounterVec
	indexes      *prometheus.CounterVec
	others       *prometheus.CounterVec
}

func newMetrics(m *controller.Metrics) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Subsystem: "job_controller", Name: name, Help: help},
			labels)
		m.Register(v)
		return v
	}
	out := &metrics{
		syncs: counter("job_syncs_total", "The number of job syncs", "completion_mode", "result", "action"),
		finished: counter("jobs_finished_total", "The number of finished jobs", "completion_mode", "result",
			"reason"),
		podsFinished: counter("job_pods_finished_total", "The number of finished Pods that are fully tracked",
			"completion_mode", "result"),
		podsCreated: counter("job_pods_creation_total", "The number of Pods created by the Job controller", "reason",
			"status"),
		byPolicy: counter("pod_failures_handled_by_failure_policy_total",
			"The number of failed Pods handled by failure policy", "action"),
		finalizers: counter("terminated_pods_tracking_finalizer_total",
			"The number of terminated pods whose tracking finalizer was removed", "event"),
		indexes: counter("job_finished_indexes_total", "The number of finished indexes", "status", "backoffLimit"),
		others: counter("jobs_by_external_controller_total",
			"The number of Jobs managed by an external controller", "controller_name"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: "job_controller", Name: "job_sync_duration_seconds", Help: "The time it took to sync a job",
			Buckets: prometheus.ExponentialBuckets(0.004, 2, 15),
		}, []string{"completion_mode", "result", "action"}),
	}
	m.Register(out.duration)
	return out
}

func mode(j *batchv1.Job) string {
	if m := j.Spec.CompletionMode; m != nil {
		return string(*m)
	}
	return string(batchv1.NonIndexedCompletion)
}

// synced notes one reconcile.
func (m *metrics) synced(s *state, todo *plan, err error, took time.Duration) {
	action := "reconciling"
	switch {
	case len(todo.create) > 0:
		action = "pods_created"
	case len(todo.withdraw)+len(todo.stop) > 0:
		action = "pods_deleted"
	case len(s.release) > 0:
		action = "tracking"
	}
	result := outcome(err)
	m.syncs.WithLabelValues(mode(s.job), result, action).Inc()
	m.duration.WithLabelValues(mode(s.job), result, action).Observe(took.Seconds())
}

func outcome(err error) string {
	if err != nil {
		return "error"
	}
	return "success"
}

// created notes pods that were to be created: all as the first error says.
func (m *metrics) created(s *state, todo *plan, err error) {
	if len(todo.create) == 0 {
		return
	}
	status, reason := "succeeded", "new"
	if err != nil {
		status = "failed"
	}
	if s.failures.n > 0 {
		reason = "recreate_terminating_or_failed"
		if s.onlyFailed() {
			reason = "recreate_failed"
		}
	}
	m.podsCreated.WithLabelValues(reason, status).Add(float64(len(todo.create)))
}

// found notes a job that is another controller's.
func (m *metrics) found(j *batchv1.Job) {
	if external(j) {
		m.others.WithLabelValues(*j.Spec.ManagedBy).Inc()
	}
}

// stored notes what a status says that the one before it did not.
func (m *metrics) stored(s *state, todo *plan) {
	for kind, n := range s.ended {
		m.finalizers.WithLabelValues("add").Add(float64(n))
		if kind.action != "" {
			m.byPolicy.WithLabelValues(string(kind.action)).Add(float64(n))
		}
	}
	now, was := &todo.status, &s.job.Status
	m.podsFinished.WithLabelValues(mode(s.job), "succeeded").Add(float64(max(now.Succeeded-was.Succeeded, 0)))
	m.podsFinished.WithLabelValues(mode(s.job), "failed").Add(float64(max(now.Failed-was.Failed, 0)))
	if s.indexed() {
		limit := "global"
		if s.perIndex() {
			limit = "perIndex"
		}
		m.indexes.WithLabelValues("succeeded", limit).Add(float64(max(now.Succeeded-was.Succeeded, 0)))
	}
	if end := batch.Finished(now); end != nil && batch.Finished(was) == nil {
		result := "succeeded"
		if end.Type == batchv1.JobFailed {
			result = "failed"
		}
		m.finished.WithLabelValues(mode(s.job), result, end.Reason).Inc()
	}
}

// untracked notes a finalizer that was taken off.
func (m *metrics) untracked() { m.finalizers.WithLabelValues("delete").Inc() }
