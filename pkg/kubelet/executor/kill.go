package executor

import (
	"context"
	"errors"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// podGrace returns the grace period of a pod's spec, 30 s by default.
func podGrace(pod *corev1.Pod) time.Duration {
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		return runtime.Seconds(*pod.Spec.TerminationGracePeriodSeconds)
	}
	return 30 * time.Second
}

// KillPod ends all containers within the grace period, then the sandboxes: the sandbox has the network that preStop
// hooks and the last requests need. Containers that were made and are stuck are left alone; they do not run.
//
// A container that could not be ended keeps its sandbox: the next round tries both again.
func (e *Executor) KillPod(ctx context.Context, pod *corev1.Pod, rt *runtime.PodStatus, grace time.Duration) error {
	begun := time.Now()
	var list []*runtime.Container
	// Events come first, for all: hooks may take the whole grace period.
	for i := range rt.Containers {
		if c := &rt.Containers[i]; c.State != runtime.StateExited && !c.Stuck {
			list = append(list, c)
			e.cfg.Events.Container(pod, c.Name, corev1.EventTypeNormal, "Killing", "Stopping container "+c.Name)
		}
	}
	span := e.spans.spanID(pod)
	if err := e.stopper(pod, begun.Add(grace), span).all(ctx, list); err != nil {
		return err
	}
	e.spans.didAs(pod, "stop", begun, span)
	begun = time.Now()
	for _, s := range rt.Sandboxes {
		if err := e.cfg.Runtime.StopSandbox(ctx, s.ID); err != nil {
			e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "FailedKillPod", "error killing pod: "+err.Error())
			return err
		}
	}
	e.spans.did(pod, "unsandbox", begun)
	return nil
}

// killOne ends a container that its pod's plan wants gone. After a failed probe, that probe's grace period wins over
// the pod's.
//
// The other containers go on: only a whole pod's end has an order.
func (e *Executor) killOne(ctx context.Context, pod *corev1.Pod, x lifecycle.Kill) error {
	grace := podGrace(pod)
	probe := x.Container.LivenessProbe
	if x.Reason == lifecycle.KillStartup {
		probe = x.Container.StartupProbe
	}
	if (x.Reason == lifecycle.KillLiveness || x.Reason == lifecycle.KillStartup) && probe != nil &&
		probe.TerminationGracePeriodSeconds != nil {
		grace = runtime.Seconds(*probe.TerminationGracePeriodSeconds)
	}
	msg := x.Message
	if msg == "" {
		msg = "Stopping container " + x.Container.Name
	}
	e.cfg.Events.Container(pod, x.Status.Name, corev1.EventTypeNormal, "Killing", msg)
	return e.stopper(pod, time.Now().Add(grace), oteltrace.SpanID{}).one(ctx, x.Status, nil)
}

// stopper returns a stopper for containers of a pod whose grace period ends at end. span is that of the pod's end, if
// it ends.
func (e *Executor) stopper(pod *corev1.Pod, end time.Time, span oteltrace.SpanID) *stopper {
	return &stopper{pod: pod, end: end, stop: e.cfg.Runtime.StopContainer,
		preStop: func(ctx context.Context, c *runtime.Container) { e.preStop(ctx, pod, c, span) }}
}

// preStop runs a container's preStop hook, if it has one. A hook that fails or exceeds the grace period gets an event;
// a cancelled step does not, because it will be repeated.
func (e *Executor) preStop(ctx context.Context, pod *corev1.Pod, cs *runtime.Container, span oteltrace.SpanID) {
	c := runtime.ContainerSpec(pod, cs.Name)
	if c == nil || c.Lifecycle == nil || c.Lifecycle.PreStop == nil {
		return
	}
	begun := time.Now()
	err := e.hook(ctx, pod, c, cs.ID.ID, c.Lifecycle.PreStop)
	e.spans.didPreStop(ctx, pod, c, begun, span, err)
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		e.cfg.Log.Info("preStop hook failed", "pod", runtime.FullName(pod), "container", c.Name, "err", err)
		e.cfg.Events.Container(pod, c.Name, corev1.EventTypeWarning, "FailedPreStopHook", "PreStopHook failed")
	}
}
