package podsyncer

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
)

var _ podworker.Steps = (*Syncer)(nil)

// maxRounds bounds the rounds of one sync. More are a sign of a mistake; the next sync goes on from there.
const maxRounds = 50

// Sync implements podworker.Steps. It does rounds until there is nothing more to do: after every action the runtime is
// looked at again, so that each decision is made from what is there and not from what should be.
func (s *Syncer) Sync(ctx context.Context, pod *corev1.Pod) (podworker.Outcome, error) {
	st := s.state(pod.UID)
	if !st.begun {
		s.begin(pod)
		st.begun, st.since = true, s.cfg.Now()
	}
	for range maxRounds {
		out, again, err := s.round(ctx, pod, st)
		if err != nil || !again {
			return out, err
		}
	}
	return podworker.Outcome{}, fmt.Errorf("pod %s/%s did not settle in %d rounds", pod.Namespace, pod.Name, maxRounds)
}

// begin has the ConfigMaps and Secrets of the pod watched. They were already when its source named the pod, but the end
// of an earlier life of the same pod may have stopped that since. A static pod refers to none.
func (s *Syncer) begin(pod *corev1.Pod) {
	if told := s.cfg.Pods.Begin(pod.UID); told != nil && !runtime.IsStatic(told) {
		s.cfg.Objects.Track(told)
	}
}

// round looks at the runtime once, gathers the facts once, plans, reports and acts. again is true if something was
// done: the next round looks at the result. The status is reported before the plan is carried out, because that may
// take as long as the pull of an image, and users want to see what the kubelet waits for.
func (s *Syncer) round(ctx context.Context, pod *corev1.Pod, st *podState) (out podworker.Outcome, again bool,
	err error) {
	rt, err := s.look(ctx, pod)
	if err != nil {
		return podworker.Outcome{}, false, err
	}
	pod = s.cfg.Pods.Shown(pod)
	over := terminal(pod.Status.Phase) // ended before this kubelet began: it takes nothing of the node
	verdict := admission.Rejected
	if !over {
		if verdict, err = s.admit(ctx, pod, st, rt); err != nil {
			return podworker.Outcome{}, false, err
		}
	}
	switch verdict {
	case admission.Waiting:
		return podworker.Outcome{}, false, nil // it is woken
	case admission.Admitted:
		s.cfg.Executor.RetryPulls(ctx, pod, st.exec)
		s.updateProbes(pod, rt)
	}
	f := s.facts(pod, st, rt, false)
	if verdict != admission.Admitted {
		s.report(f, st, verdict == admission.Rejected && !over)
		return podworker.Outcome{Ended: true}, false, nil
	}
	if why := s.ending(st); why != nil {
		s.end(f, st, why)
		return podworker.Outcome{Ended: true, Grace: &why.Grace}, false, nil
	}
	deadline := lifecycle.Deadline(pod)
	if s.expire(f, st, deadline) {
		return podworker.Outcome{Ended: true}, false, nil
	}
	s.tellResize(ctx, pod, f, st)
	plan := lifecycle.Next(f)
	s.cfg.Executor.HoldBack(f, st.exec, plan)
	if now := s.report(f, st, false); terminal(now.Phase) {
		return podworker.Outcome{Ended: true}, false, nil
	}
	if err := s.cfg.Executor.PrepareRunning(ctx, f.Pod, st.exec, rt); err != nil {
		return podworker.Outcome{}, false, err
	}
	if plan.Done() {
		return podworker.Outcome{Wake: lifecycle.Earlier(plan.Wake, deadline)}, false, nil
	}
	err = s.cfg.Executor.Act(ctx, f, st.exec, plan)
	s.resized(f, st, err)
	if s.beyondLimit(f, st, err) {
		return podworker.Outcome{Ended: true}, false, nil
	}
	return podworker.Outcome{}, true, err
}

// admit asks whether the node takes, and keeps, a pod. A refusal is final and is remembered. The resources are
// allocated once, in the round in which the pod is admitted.
func (s *Syncer) admit(ctx context.Context, pod *corev1.Pod, st *podState, rt *runtime.PodStatus) (admission.Verdict,
	error) {
	if st.rejected != nil {
		return admission.Rejected, nil
	}
	begun := s.cfg.Now()
	defer func() {
		if st.rejected != nil {
			s.did(pod, "admit", begun, st.rejected.Reason)
		}
	}()
	verdict, why := s.cfg.Admission.Admit(pod)
	switch verdict {
	case admission.Preempted:
		st.disruption = "Pod was preempted by Kubelet to accommodate a critical pod."
		st.rejected = why
		s.cfg.Events.Pod(pod, corev1.EventTypeWarning, why.Reason, why.Message)
	case admission.Rejected:
		s.reject(pod, st, *why)
	}
	if verdict == admission.Admitted && !st.admitted {
		if err := s.allocate(ctx, pod, st, rt); err != nil || st.rejected != nil {
			return admission.Rejected, err
		}
		st.admitted = true
		s.did(pod, "admit", begun, "")
		s.updateQoS(ctx)
	}
	return verdict, nil
}

// allocate gives a pod that begins the node's scarce resources. A pod that runs has them.
func (s *Syncer) allocate(ctx context.Context, pod *corev1.Pod, st *podState, rt *runtime.PodStatus) error {
	if rt.SandboxReady() {
		return nil
	}
	given, _ := s.cfg.Admission.Allocation(pod)
	err := s.cfg.Resources.Admit(ctx, given)
	refused := (*cm.Refusal)(nil)
	if !errors.As(err, &refused) {
		return err
	}
	s.reject(pod, st, admission.Rejection{Reason: refused.Reason, Message: refused.Message})
	return nil
}

// reject records that the node does not take a pod. The message of the status has a prefix; that of the event has not.
func (s *Syncer) reject(pod *corev1.Pod, st *podState, why admission.Rejection) {
	s.cfg.Events.Pod(pod, corev1.EventTypeWarning, why.Reason, why.Message)
	s.cfg.Rejected(why.Reason)
	why.Message = "Pod was rejected: " + why.Message
	st.rejected = &why
}

// look asks the runtime for the pod. The names are filled in from the spec: the runtime may have nothing of the pod
// yet.
func (s *Syncer) look(ctx context.Context, pod *corev1.Pod) (*runtime.PodStatus, error) {
	rt, err := s.cfg.Runtime.PodStatus(ctx, pod.UID)
	if err != nil {
		return nil, fmt.Errorf("look at the pod in the container runtime: %w", err)
	}
	rt.Name, rt.Namespace = pod.Name, pod.Namespace
	return rt, nil
}
