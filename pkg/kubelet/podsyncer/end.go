package podsyncer

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Terminate implements podworker.Steps. Liveness and startup probes stop first, so that they do not restart what is
// ending; readiness goes on, because it decides whether the pod's endpoints still serve. At the end the runtime is
// looked at again: only that nothing runs is proof.
func (s *Syncer) Terminate(ctx context.Context, pod *corev1.Pod, grace time.Duration) error {
	st := s.state(pod.UID)
	s.cfg.Probes.StopLivenessAndStartup(pod.UID)
	rt, err := s.reportEnding(ctx, pod, st)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// The status stays fresh while containers use their grace period, when readiness changes or a container ends. A
		// look that failed is repeated at the next change, and in any case at the end.
		eachChange(ctx, st.changed, done, func() { _, _ = s.reportEnding(ctx, pod, st) })
	}()
	err = s.cfg.Executor.KillPod(ctx, pod, rt, grace)
	close(done)
	<-watched
	if err != nil {
		return err
	}
	s.cfg.Probes.Remove(pod.UID)
	if rt, err = s.look(ctx, pod); err != nil {
		return err
	}
	if rt.Running() || rt.SandboxReady() {
		return fmt.Errorf("pod %s/%s still has running containers", pod.Namespace, pod.Name)
	}
	s.report(s.facts(s.cfg.Pods.Shown(pod), st, rt, true), st, true)
	return nil
}

// reportEnding looks at a pod that is ending and reports its status.
func (s *Syncer) reportEnding(ctx context.Context, pod *corev1.Pod, st *podState) (*runtime.PodStatus, error) {
	rt, err := s.look(ctx, pod)
	if err == nil {
		s.report(s.facts(s.cfg.Pods.Shown(pod), st, rt, true), st, false)
	}
	return rt, err
}

// eachChange runs f on every change until done is closed or ctx ends. Changes during f are joined into one.
func eachChange(ctx context.Context, changed, done <-chan struct{}, f func()) {
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			return
		case <-changed:
			f()
		}
	}
}

// Cleanup implements podworker.Steps. It stops at the first failure and is called again: volumes that are still mounted
// keep the pod's resources.
func (s *Syncer) Cleanup(ctx context.Context, pod *corev1.Pod) error {
	begun := s.cfg.Now()
	if err := s.cfg.Volumes.Unmount(ctx, pod.UID); err != nil {
		return fmt.Errorf("unmount the volumes: %w", err)
	}
	if err := s.cfg.Resources.Unprepare(ctx, pod.UID); err != nil {
		return fmt.Errorf("take back the pod's resources: %w", err)
	}
	s.cfg.Objects.Untrack(pod.UID)
	s.did(pod, "cleanup", begun, "")
	return nil
}

// Finish implements podworker.Steps: the API object of a deleted pod is deleted after its last status was written.
func (s *Syncer) Finish(_ context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil && !runtime.IsStatic(pod) {
		s.cfg.Status.Delete(pod.UID)
	}
	return nil
}

// Forget implements podworker.Steps. What is in memory goes last, so that a failure is repeated with all of it.
func (s *Syncer) Forget(ctx context.Context, pod *corev1.Pod) error {
	rt, err := s.cfg.Runtime.PodStatus(ctx, pod.UID)
	if err != nil {
		return err
	}
	// What cannot be removed does not keep the rest on the node: a sandbox may have to wait for a restart of the
	// runtime.
	var errs []error
	for _, box := range rt.Sandboxes {
		errs = append(errs, s.cfg.Runtime.RemoveSandbox(ctx, box.ID))
	}
	for _, c := range rt.Containers {
		errs = append(errs, s.cfg.Runtime.RemoveContainer(ctx, c.ID.ID))
	}
	if err := s.cfg.Volumes.Remove(ctx, pod.UID); err != nil {
		errs = append(errs, fmt.Errorf("remove the pod's directory: %w", err))
	}
	errs = append(errs, s.cfg.Logs.RemovePod(pod.Namespace, pod.Name, pod.UID))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// Again: an update in the moment of the pod's end may have tracked it.
	s.cfg.Objects.Untrack(pod.UID)
	s.cfg.Resizes.States(pod, "", false)
	s.mu.Lock()
	if st := s.states[pod.UID]; st != nil && st.resize.reason == corev1.PodReasonDeferred {
		s.cfg.Resizes.Resolved(pod, "terminated", s.cfg.Now().Sub(st.resize.deferred))
	}
	delete(s.states, pod.UID)
	s.cfg.Changes.forget(pod.UID)
	s.mu.Unlock()
	s.cfg.Pods.Forget(pod)
	return nil
}
