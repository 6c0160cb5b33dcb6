package job

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/batch"
)

// verdict is how a job ends, and why.
//
// nil means that the job goes on.
type verdict struct {
	success         bool
	reason, message string
}

// verdict says how the job ends if that is certain, whatever its pods still do. What a condition in the stored status
// says stays so. The duration, if positive, is when the job's deadline ends.
//
// The order is: what was decided earlier; a rule with FailJob, which ends the job whatever the limits allow; the
// backoff limit; the deadline; the indexes. What was decided first stays because clients have acted on it.
func (s *state) verdict() (*verdict, time.Duration) {
	st := &s.job.Status
	if c := batch.Condition(st, batchv1.JobFailureTarget); c != nil && c.Status == corev1.ConditionTrue {
		return &verdict{false, c.Reason, c.Message}, 0
	}
	if c := batch.Condition(st, batchv1.JobSuccessCriteriaMet); c != nil && c.Status == corev1.ConditionTrue {
		return &verdict{true, c.Reason, c.Message}, 0
	}
	if m := s.failsJob(); m != nil {
		return &verdict{false, batchv1.JobReasonPodFailurePolicy, m.message}, 0
	}
	if s.total() > deref(s.job.Spec.BackoffLimit) || s.restartedTooOften() {
		return &verdict{false, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit"}, 0
	}
	left, bounded := s.deadline()
	if bounded && left <= 0 {
		return &verdict{false, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline"}, 0
	}
	if v := s.index.verdict(); v != nil {
		return v, 0
	}
	return nil, left
}

// deadline is how long the job may still be active; false without a limit.
//
// A job that is being resumed in this round has its whole time: its old startTime counts no more.
func (s *state) deadline() (time.Duration, bool) {
	d := s.job.Spec.ActiveDeadlineSeconds
	if d == nil || s.suspended() {
		return 0, false
	}
	limit := time.Duration(*d) * time.Second
	if start := s.job.Status.StartTime; start != nil && !batch.IsTrue(&s.job.Status, batchv1.JobSuspended) {
		return limit - s.now.Sub(start.Time), true
	}
	return limit, true
}

// restartedTooOften: where failed containers are started again in their pods, their restarts count as the pods'
// failures.
//
// Only pods that still run are asked: those that ended are counted as failed or succeeded.
func (s *state) restartedTooOften() bool {
	if s.job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	var n int32
	for _, p := range s.pods {
		if p.Status.Phase != corev1.PodRunning && p.Status.Phase != corev1.PodPending {
			continue
		}
		for _, c := range p.Status.InitContainerStatuses {
			n += c.RestartCount
		}
		for _, c := range p.Status.ContainerStatuses {
			n += c.RestartCount
		}
	}
	// As upstream: restarts reach the limit, failed pods have to exceed it.
	limit := deref(s.job.Spec.BackoffLimit)
	if limit == 0 {
		return n > 0
	}
	return n >= limit
}

// failsJob returns the rule by which some pod's failure is the job's, or nil. Pods without the finalizer are counted,
// or were withdrawn.
func (s *state) failsJob() *match {
	for _, p := range s.pods {
		if !tracked(p) || !s.hasFailed(p) {
			continue
		}
		if m := s.matchFailure(p); m != nil && m.action == batchv1.PodFailurePolicyActionFailJob {
			return m
		}
	}
	return nil
}

// reached returns the verdict of a job that has all its successes and no active pod, or nil. It reads what tally has
// found, and trusts it only if the cache shows all own writes: a pod that was just created is active too. Without
// completions one success is enough, when the others have ended.
func (s *state) reached() *verdict {
	n := s.succeeded
	if !s.indexed() {
		n += int32(len(s.waiting.Succeeded))
	}
	enough := n >= deref(s.job.Spec.Completions)
	if s.job.Spec.Completions == nil {
		enough = n > 0
	}
	if !enough || !s.upToDate || len(s.active()) > 0 {
		return nil
	}
	return &verdict{true, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods"}
}
