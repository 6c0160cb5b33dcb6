package job

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/api/batch"
	"bonsai/pkg/controller"
)

// report writes the status that the step leads to. A job ends in two steps, as Kubernetes documents it: first
// FailureTarget or SuccessCriteriaMet says how it will end, while its pods terminate. Failed or Complete follows when
// no pod is left and each is counted. A client that sees the second may reuse what the pods held.
func (s *state) report(v *verdict, out *plan) {
	st := s.job.Status.DeepCopy()
	st.Succeeded, st.Failed = s.succeeded, s.failed
	st.UncountedTerminatedPods = s.waiting.DeepCopy()
	if s.indexed() {
		st.CompletedIndexes = s.index.completed.String()
		if s.perIndex() {
			st.FailedIndexes = new(s.index.failed.String())
		}
	}
	// Otherwise the cache lacks own writes, and the counts of the last round are nearer to the truth.
	if s.upToDate {
		s.countPods(st, out)
	}
	s.start(v, st, out)
	if v != nil {
		s.conclude(v, st, out)
	}
	out.status = *st
}

// countPods counts the pods as they are when the step is done.
func (s *state) countPods(st *batchv1.JobStatus, out *plan) {
	gone := map[*corev1.Pod]bool{}
	for _, p := range out.withdraw {
		gone[p] = true
	}
	for _, p := range out.stop {
		gone[p] = true
	}
	var active, ready, leaving int32
	for _, p := range s.pods {
		switch {
		case gone[p] || terminating(p):
			leaving++
		case controller.PodActive(p):
			active++
			if controller.PodReady(p) {
				ready++
			}
		}
	}
	st.Active, st.Ready, st.Terminating = active+int32(len(out.create)), &ready, &leaving
}

// start keeps startTime, from which activeDeadlineSeconds runs: not while the job is suspended, and from the start when
// it is resumed (KEP-2232).
func (s *state) start(v *verdict, st *batchv1.JobStatus, out *plan) {
	now := metav1.NewTime(s.now)
	was := batch.IsTrue(st, batchv1.JobSuspended)
	switch {
	case s.suspended() && v == nil:
		if s.upToDate && !was {
			s.set(st, batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended")
			out.says = append(out.says, says{corev1.EventTypeNormal, "Suspended", "Job suspended"})
			st.StartTime = nil
		}
	case !s.suspended() && was:
		s.set(st, batchv1.JobSuspended, corev1.ConditionFalse, "JobResumed", "Job resumed")
		out.says = append(out.says, says{corev1.EventTypeNormal, "Resumed", "Job resumed"})
		st.StartTime = &now
	case !s.suspended() && st.StartTime == nil:
		st.StartTime = &now
	}
}

// conclude writes the conditions of the job's end, the first one now and the final one when the pods are gone. The
// reason and the message of the final one are those of the first, whatever happened in between.
func (s *state) conclude(v *verdict, st *batchv1.JobStatus, out *plan) {
	target, end := batchv1.JobFailureTarget, batchv1.JobFailed
	if v.success {
		target, end = batchv1.JobSuccessCriteriaMet, batchv1.JobComplete
	}
	if !batch.IsTrue(st, target) {
		s.set(st, target, corev1.ConditionTrue, v.reason, v.message)
	}
	left := st.Active > 0 || deref(st.Terminating) > 0 || len(s.waiting.Succeeded)+len(s.waiting.Failed) > 0
	if left || !s.upToDate {
		return
	}
	if st.StartTime == nil { // suspended all its life
		st.StartTime = new(metav1.NewTime(s.now))
	}
	s.set(st, end, corev1.ConditionTrue, v.reason, v.message)
	if !v.success {
		out.says = append(out.says, says{corev1.EventTypeWarning, v.reason, v.message})
		return
	}
	at := metav1.NewTime(s.now)
	if at.Before(st.StartTime) {
		at = *st.StartTime
	}
	st.CompletionTime = &at
	out.says = append(out.says, says{corev1.EventTypeNormal, "Completed", "Job completed"})
}

// set writes a condition.
func (s *state) set(st *batchv1.JobStatus, t batchv1.JobConditionType, status corev1.ConditionStatus, reason,
	message string) {
	now := metav1.NewTime(s.now)
	fresh := batchv1.JobCondition{Type: t, Status: status, Reason: reason, Message: message, LastProbeTime: now,
		LastTransitionTime: now}
	if c := batch.Condition(st, t); c != nil {
		*c = fresh
		return
	}
	st.Conditions = append(st.Conditions, fresh)
}
