package podsyncer

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// resize is what was reported about a pod's resize, so that each step is reported once.
type resize struct {
	// asked is the last generation that was counted as asking for a resize, 0 before the first round.
	asked int64
	// has is what the pod had when it was last looked at.
	has runtime.Resources
	// reason is the reported reason why the resize is pending, "" if none was. deferred is when it was deferred.
	reason   string
	deferred time.Time
	// doing is the generation whose resize was reported as started, since when; 0: none.
	doing int64
	since time.Time
	// problem is why the last try failed, "" if it did not, or there was none.
	problem string
}

// tellResize reports the steps of a pod's resize in events and metrics. asks is the pod as its source wants it.
func (s *Syncer) tellResize(ctx context.Context, asks *corev1.Pod, f lifecycle.Facts, st *podState) {
	now, was := f.Resize, &st.resize
	if was.asked != 0 && asks.Generation != was.asked && !runtime.ResourcesOf(asks).Equal(was.has) {
		s.cfg.Resizes.Requested(was.has, runtime.ResourcesOf(asks))
	}
	granted := !runtime.ResourcesOf(f.Pod).Equal(was.has)
	was.asked, was.has = asks.Generation, runtime.ResourcesOf(f.Pod)
	switch isDeferred, wasDeferred := now.Reason == corev1.PodReasonDeferred,
		was.reason == corev1.PodReasonDeferred; {
	case isDeferred && !wasDeferred:
		was.deferred = f.Now
	case wasDeferred && now.Reason == "" && granted:
		s.cfg.Resizes.Resolved(f.Pod, "accepted", f.Now.Sub(was.deferred))
	case wasDeferred && now.Reason == "":
		s.cfg.Resizes.Resolved(f.Pod, "reverted", f.Now.Sub(was.deferred))
	}
	if now.Reason != "" && now.Reason != was.reason {
		s.cfg.Events.Pod(f.Pod, corev1.EventTypeWarning, "Resize"+now.Reason,
			"Pod resize "+now.Reason+": "+lifecycle.DescribeResize(asks, asks.Generation, now.Message))
		if now.Reason == corev1.PodReasonInfeasible {
			s.cfg.Resizes.Infeasible(runtime.IsStatic(f.Pod))
		}
	}
	was.reason = now.Reason
	doing := lifecycle.ResizeInProgress(f)
	switch {
	case doing && was.doing != now.Generation:
		was.doing, was.since, was.problem = now.Generation, f.Now, ""
		s.cfg.Events.Pod(f.Pod, corev1.EventTypeNormal, "ResizeStarted",
			"Pod resize started: "+lifecycle.DescribeResize(f.Pod, now.Generation, ""))
	case !doing && was.doing != 0:
		s.cfg.Events.Pod(f.Pod, corev1.EventTypeNormal, "ResizeCompleted",
			"Pod resize completed: "+lifecycle.DescribeResize(f.Pod, now.Generation, ""))
		s.cfg.Resizes.Done(f.Now.Sub(was.since), nil)
		was.doing, was.problem = 0, ""
		s.updateQoS(ctx)
	}
	s.cfg.Resizes.States(f.Pod, now.Reason, doing)
}

// resized records how a try to resize the pod went, and shows what went wrong.
func (s *Syncer) resized(f lifecycle.Facts, st *podState, err error) {
	var failed *executor.ResizeError
	problem := ""
	if errors.As(err, &failed) {
		problem = failed.Error()
	}
	if problem == st.resize.problem {
		return
	}
	first := st.resize.problem == ""
	if st.resize.problem = problem; problem == "" {
		return // the next round tells what came of it
	}
	if first { // what is in use, which the problem tells, changes from one try to the next
		s.cfg.Events.Pod(f.Pod, corev1.EventTypeWarning, "ResizeError",
			"Pod resize error: "+lifecycle.DescribeResize(f.Pod, f.Resize.Generation, problem))
		s.cfg.Resizes.Done(f.Now.Sub(st.resize.since), failed)
	}
	f.Resize.Error = problem
	s.report(f, st, false)
}

// updateQoS gives the cgroups of the QoS classes the sums of their pods. An error is only logged: housekeeping repeats
// it.
func (s *Syncer) updateQoS(ctx context.Context) {
	pods := s.cfg.Active()
	for i, p := range pods {
		pods[i], _ = s.cfg.Admission.Allocation(p)
	}
	if err := s.cfg.Cgroups.UpdateQoS(ctx, pods); err != nil {
		s.cfg.Log.Warn("cgroups of the service classes not updated", "err", err)
	}
}
