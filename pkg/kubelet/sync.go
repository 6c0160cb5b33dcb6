package kubelet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// maxRounds bounds the rounds of one sync; more are a sign of a mistake, and the next sync goes on.
const maxRounds = 50

// Sync implements podworker.Steps: look at the runtime, plan, report, act, until the plan is empty.
func (k *Kubelet) Sync(ctx context.Context, pod *corev1.Pod) (podworker.Outcome, error) {
	st := k.state(pod.UID)
	if !st.begun {
		k.begin(pod)
		st.begun = true
	}
	for range maxRounds {
		rt, err := k.look(ctx, pod)
		if err != nil {
			return podworker.Outcome{}, err
		}
		pod := k.withStatus(pod)
		if terminal(pod.Status.Phase) { // ended before this kubelet began: it takes nothing of the node
			k.report(k.facts(pod, st, rt, false), st, false)
			return podworker.Outcome{Ended: true}, nil
		}
		switch k.admit(pod, st) {
		case admission.Waiting:
			return podworker.Outcome{}, nil // it is woken
		case admission.Rejected:
			k.report(k.facts(pod, st, rt, false), st, true)
			return podworker.Outcome{Ended: true}, nil
		case admission.Preempted:
			k.report(k.facts(pod, st, rt, false), st, false)
			return podworker.Outcome{Ended: true}, nil
		}
		k.exec.RetryPulls(ctx, pod, st.exec)
		k.updateProbes(pod, rt)
		f := k.facts(pod, st, rt, false)
		deadline := lifecycle.Deadline(pod)
		if k.evicted(f, st) {
			return podworker.Outcome{Ended: true, Grace: new(evictionGrace)}, nil
		}
		if k.overdue(f, st, deadline) {
			return podworker.Outcome{Ended: true}, nil
		}
		plan := lifecycle.Next(f)
		k.exec.HoldBack(f, st.exec, plan)
		if s := k.report(f, st, false); terminal(s.Phase) {
			return podworker.Outcome{Ended: true}, nil
		}
		if err := k.exec.PrepareRunning(ctx, pod, st.exec, rt); err != nil {
			return podworker.Outcome{}, err
		}
		if plan.Done() {
			return podworker.Outcome{Wake: lifecycle.Earlier(plan.Wake, deadline)}, nil
		}
		if err := k.exec.Act(ctx, f, st.exec, plan); err != nil {
			return podworker.Outcome{}, err
		}
	}
	return podworker.Outcome{}, fmt.Errorf("pod %s/%s did not settle in %d rounds", pod.Namespace, pod.Name, maxRounds)
}

// begin tells the pod's helpers of it. They know it from its source, but may have forgotten it since, with the end of an earlier life
// of the pod.
func (k *Kubelet) begin(pod *corev1.Pod) {
	k.mu.Lock()
	known, mirror := k.pods[pod.UID], k.mirrorLocked(pod)
	k.mu.Unlock()
	switch {
	case known == nil: // it is about to be removed
	case !runtime.IsStatic(pod):
		k.status.Observe(pod.UID, known)
		k.objects.Track(known)
	case mirror != nil:
		k.status.Observe(pod.UID, mirror)
	}
}

// overdue ends a pod that has used up its time.
func (k *Kubelet) overdue(f lifecycle.Facts, st *podState, deadline time.Time) bool {
	if deadline.IsZero() || f.Now.Before(deadline) {
		return false
	}
	st.rejected = &admission.Rejection{Reason: lifecycle.ReasonDeadlineExceeded, Message: lifecycle.MessageDeadlineExceeded}
	k.events.Pod(f.Pod, corev1.EventTypeNormal, st.rejected.Reason, st.rejected.Message)
	k.report(f, st, false)
	return true
}

// look asks the runtime for the pod.
func (k *Kubelet) look(ctx context.Context, pod *corev1.Pod) (*runtime.PodStatus, error) {
	rt, err := k.cri.PodStatus(ctx, pod.UID)
	if err != nil {
		return nil, fmt.Errorf("look at the pod in the container runtime: %w", err)
	}
	rt.Name, rt.Namespace = pod.Name, pod.Namespace
	return rt, nil
}

func (k *Kubelet) updateProbes(pod *corev1.Pod, rt *runtime.PodStatus) {
	ip := ""
	if s := rt.Sandbox(); pod.Spec.HostNetwork {
		if ips := k.node.HostIPs(); len(ips) > 0 {
			ip = ips[0]
		}
	} else if s != nil && len(s.IPs) > 0 {
		ip = s.IPs[0]
	}
	targets := prober.TargetsOf(pod, rt, ip)
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, s := range list {
			if t, ok := targets[s.Name]; ok && t.ID == s.ContainerID {
				t.Ready = s.Ready
				t.StartupDone = t.StartupDone || (s.Started != nil && *s.Started)
				targets[s.Name] = t
			}
		}
	}
	k.probes.Update(pod, targets)
}

// Terminate implements podworker.Steps.
func (k *Kubelet) Terminate(ctx context.Context, pod *corev1.Pod, grace time.Duration) error {
	st := k.state(pod.UID)
	k.probes.StopLivenessAndStartup(pod.UID)
	rt, err := k.look(ctx, pod)
	if err != nil {
		return err
	}
	k.report(k.facts(k.withStatus(pod), st, rt, true), st, false)
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		k.reportWhileEnding(ctx, pod, st, done)
	}()
	err = k.exec.KillPod(ctx, pod, rt, grace)
	close(done)
	<-watched
	if err != nil {
		return err
	}
	k.probes.Remove(pod.UID)
	if rt, err = k.look(ctx, pod); err != nil {
		return err
	}
	if rt.Running() || rt.SandboxReady() {
		return fmt.Errorf("pod %s/%s still has running containers", pod.Namespace, pod.Name)
	}
	k.report(k.facts(k.withStatus(pod), st, rt, true), st, true)
	return nil
}

// reportWhileEnding keeps the status fresh while containers use their grace period: when readiness changes or a container ends.
func (k *Kubelet) reportWhileEnding(ctx context.Context, pod *corev1.Pod, st *podState, done <-chan struct{}) {
	eachChange(ctx, st.changed, done, func() {
		if rt, err := k.look(ctx, pod); err == nil {
			k.report(k.facts(k.withStatus(pod), st, rt, true), st, false)
		}
	})
}

// eachChange does f on every change until done is closed or ctx ends. Changes that come during f are joined.
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

// changed tells the pod's worker, and the one that watches its end, that something happened to it in the runtime or its probes.
func (k *Kubelet) changed(uid types.UID) {
	k.mu.Lock()
	st := k.states[uid]
	k.mu.Unlock()
	if st != nil {
		select {
		case st.changed <- struct{}{}:
		default:
		}
	}
	k.workers.Wake(uid)
}

// Cleanup implements podworker.Steps.
func (k *Kubelet) Cleanup(ctx context.Context, pod *corev1.Pod) error {
	begun := time.Now()
	if err := k.volumes.Unmount(ctx, pod.UID); err != nil {
		return fmt.Errorf("unmount the volumes: %w", err)
	}
	if err := k.cgroups.RemovePod(ctx, pod.UID); err != nil {
		return fmt.Errorf("remove the cgroup: %w", err)
	}
	k.objects.Untrack(pod.UID)
	trace.Step(ctx, k.log, pod, "kubelet.cleanup", begun, time.Now())
	return nil
}

// Finish implements podworker.Steps.
func (k *Kubelet) Finish(_ context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil && !runtime.IsStatic(pod) {
		k.status.Delete(pod.UID)
	}
	return nil
}

// Forget implements podworker.Steps.
func (k *Kubelet) Forget(ctx context.Context, pod *corev1.Pod) error {
	rt, err := k.cri.PodStatus(ctx, pod.UID)
	if err != nil {
		return err
	}
	for _, s := range rt.Sandboxes {
		if err := k.cri.RemoveSandbox(ctx, s.ID); err != nil {
			return err
		}
	}
	for _, c := range rt.Containers {
		if err := k.cri.RemoveContainer(ctx, c.ID.ID); err != nil {
			return err
		}
	}
	if err := k.volumes.Remove(ctx, pod.UID); err != nil {
		return fmt.Errorf("remove the pod's directory: %w", err)
	}
	if err := k.cfg.Logs.RemovePod(pod.Namespace, pod.Name, pod.UID); err != nil {
		return err
	}
	// Again: the pod may have been tracked by an update that came in the moment of its end.
	k.objects.Untrack(pod.UID)
	k.status.Forget(pod.UID)
	k.mu.Lock()
	delete(k.states, pod.UID)
	if m := k.mirrorLocked(pod); m != nil {
		k.outlived[m.UID] = true
	}
	k.mu.Unlock()
	k.pokeMirrors()
	return nil
}
