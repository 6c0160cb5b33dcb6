package kubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// minGrace is the least time a container gets between its stop signal and its kill, whatever its preStop hook has used up.
const minGrace = 2 * time.Second

// podGrace is the grace period of a pod's spec.
func podGrace(pod *corev1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	return 30 * time.Second
}

// killPod ends all containers, the regular ones together and the sidecars after them in reverse order, then the sandboxes.
func (k *Kubelet) killPod(ctx context.Context, pod *corev1.Pod, rt *runtime.PodStatus, grace time.Duration) error {
	begun := time.Now()
	end := begun.Add(grace)
	var first []*runtime.Container
	sidecars := map[string]*runtime.Container{}
	for i := range rt.Containers {
		c := &rt.Containers[i]
		if c.State != runtime.StateRunning && c.State != runtime.StateUnknown && c.State != runtime.StateCreated {
			continue
		}
		if isSidecar(pod, c.Name) && c.State == runtime.StateRunning {
			sidecars[c.Name] = c
			continue
		}
		first = append(first, c)
	}
	errs := make([]error, len(first))
	var wg sync.WaitGroup
	for i, c := range first {
		wg.Go(func() { errs[i] = k.killContainer(ctx, pod, c, end, "Stopping container "+c.Name) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := len(pod.Spec.InitContainers) - 1; i >= 0; i-- {
		if c := sidecars[pod.Spec.InitContainers[i].Name]; c != nil {
			if err := k.killContainer(ctx, pod, c, end, "Stopping container "+c.Name); err != nil {
				return err
			}
		}
	}
	trace.Step(ctx, k.log, pod, "kubelet.stop", begun, time.Now())
	begun = time.Now()
	for _, s := range rt.Sandboxes {
		if err := k.cri.StopSandbox(ctx, s.ID); err != nil {
			k.podEvent(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: "+err.Error())
			return err
		}
	}
	trace.Step(ctx, k.log, pod, "kubelet.unsandbox", begun, time.Now())
	return nil
}

func isSidecar(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			return lifecycle.Sidecar(&pod.Spec.InitContainers[i])
		}
	}
	return false
}

// killOne ends a container that its pod's plan wants gone.
func (k *Kubelet) killOne(ctx context.Context, pod *corev1.Pod, x lifecycle.Kill) error {
	grace := podGrace(pod)
	probe := x.Container.LivenessProbe
	if x.Reason == lifecycle.KillStartup {
		probe = x.Container.StartupProbe
	}
	if (x.Reason == lifecycle.KillLiveness || x.Reason == lifecycle.KillStartup) && probe != nil && probe.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*probe.TerminationGracePeriodSeconds) * time.Second
	}
	msg := x.Message
	if msg == "" {
		msg = "Stopping container " + x.Container.Name
	}
	return k.killContainer(ctx, pod, x.Status, time.Now().Add(grace), msg)
}

// killContainer runs the preStop hook, then stops the container; both together may take until end.
func (k *Kubelet) killContainer(ctx context.Context, pod *corev1.Pod, cs *runtime.Container, end time.Time, message string) error {
	k.containerEvent(pod, cs.Name, corev1.EventTypeNormal, "Killing", message)
	if c := containerSpec(pod, cs.Name); c != nil && c.Lifecycle != nil && c.Lifecycle.PreStop != nil &&
		cs.State == runtime.StateRunning && time.Until(end) > 0 {
		k.preStop(ctx, pod, c, cs, end)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	grace := max(time.Until(end).Round(time.Second), minGrace)
	if total := podGraceLeft(pod); total >= 0 && total < grace {
		grace = total
	}
	if err := k.cri.StopContainer(ctx, cs.ID.ID, grace); err != nil {
		return fmt.Errorf("kill container %s: %w", cs.Name, err)
	}
	return nil
}

// podGraceLeft is the deletion's grace period if it is shorter than the least one, else -1: "now" means now.
func podGraceLeft(pod *corev1.Pod) time.Duration {
	if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds < int64(minGrace/time.Second) {
		return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return -1
}

func (k *Kubelet) preStop(ctx context.Context, pod *corev1.Pod, c *corev1.Container, cs *runtime.Container, end time.Time) {
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	if err := k.hook(ctx, pod, c, cs.ID.ID, c.Lifecycle.PreStop); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		k.log.Info("preStop hook failed", "pod", fullName(pod), "container", c.Name, "err", err)
		k.containerEvent(pod, c.Name, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}

func containerSpec(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}
