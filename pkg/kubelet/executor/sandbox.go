package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
)

// PrepareRunning gives a pod that already runs when the kubelet starts its resources, directories and volumes. Its
// volumes then stay fresh, and it can get further containers. It does nothing for a pod that this Executor has
// prepared.
//
// The pod's worker calls it in every round.
func (e *Executor) PrepareRunning(ctx context.Context, pod *corev1.Pod, p *Pod, rt *runtime.PodStatus) error {
	if p.prepared || !rt.SandboxReady() { // the making of its sandbox does it
		return nil
	}
	if err := e.prepare(ctx, pod); err != nil {
		return err
	}
	return e.mount(ctx, pod, p)
}

// prepare gives a pod what must exist before its sandbox: the cgroup that is the sandbox's parent, and the directory
// that the runtime writes logs to.
//
// It is done again before each sandbox, and must give the same again.
func (e *Executor) prepare(ctx context.Context, pod *corev1.Pod) error {
	if err := e.cfg.Resources.Prepare(ctx, pod); err != nil {
		return err
	}
	if err := os.MkdirAll(e.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID), 0o755); err != nil {
		return fmt.Errorf("make the pod's log directory: %w", err)
	}
	return nil
}

// mount makes the volumes. Only when all of them are ready is the pod prepared.
func (e *Executor) mount(ctx context.Context, pod *corev1.Pod, p *Pod) error {
	begun := time.Now()
	mounts, err := e.cfg.Volumes.Mount(ctx, pod)
	if err != nil {
		if ctx.Err() == nil {
			e.tellFailedMount(pod, p, err)
		}
		return fmt.Errorf("mount the volumes: %w", err)
	}
	p.mounts, p.prepared = mounts, true
	e.spans.did(pod, "volumes", begun)
	return nil
}

// attachPatience is how long a pod waits for its volumes to be attached before users hear of it; upstream's.
const attachPatience = 2*time.Minute + 3*time.Second

// tellFailedMount sends an event for each volume that could not be made. Volumes that are not attached yet are the
// usual course: they get one event in attachPatience, for all of them together.
func (e *Executor) tellFailedMount(pod *corev1.Pod, p *Pod, err error) {
	list := []error{err}
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		list = all.Unwrap()
	}
	var unattached []string
	for _, err := range list {
		if pending, is := errors.AsType[*volume.PendingError](err); is {
			unattached = append(unattached, pending.Volume)
			continue
		}
		reason := "FailedMount"
		if _, device := errors.AsType[*volume.MapError](err); device {
			reason = "FailedMapVolume"
		}
		e.cfg.Events.Pod(pod, corev1.EventTypeWarning, reason, err.Error())
	}
	switch {
	case len(unattached) == 0:
		p.attaching = time.Time{}
	case p.attaching.IsZero():
		p.attaching = time.Now()
	case time.Since(p.attaching) >= attachPatience:
		p.attaching = time.Now()
		names := strings.Join(unattached, " ")
		e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "FailedMount",
			fmt.Sprintf("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[%s], "+
				"failed to process volumes=[]: %v", names, names, context.DeadlineExceeded))
	}
}

// newSandbox makes a sandbox while the volumes are being mounted: both are slow, and neither needs the other. It always
// waits for the mount, because p must not be touched after the step. If the mount fails, the sandbox stays, and the
// next round mounts again.
//
// The order of the checks: network and runtime class first, because nothing is left behind if they fail; cgroup and
// directories next, because the runtime needs them; then the slow part.
func (e *Executor) newSandbox(ctx context.Context, f lifecycle.Facts, p *Pod, attempt uint32) error {
	pod := f.Pod
	if err := e.networkReady(ctx, pod); err != nil {
		e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: "+err.Error())
		return fmt.Errorf("network is not ready: %w", err)
	}
	handler, err := e.cfg.Classes.Handler(ctx, pod)
	if err != nil {
		if ctx.Err() == nil {
			e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox",
				fmt.Sprintf("Failed to create pod sandbox: %v", err))
		}
		return fmt.Errorf("find the runtime handler: %w", err)
	}
	if err := e.hostUsers(pod, handler); err != nil {
		e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox",
			fmt.Sprintf("Failed to create pod sandbox: %v", err))
		return err
	}
	if err := e.prepare(ctx, pod); err != nil {
		return err
	}
	mounted := make(chan error, 1)
	go func() { mounted <- e.mount(ctx, pod, p) }()
	release, err := e.turns.take(ctx)
	if err != nil {
		<-mounted
		return err
	}
	begun := time.Now()
	id, err := e.cfg.Runtime.RunSandbox(ctx, pod, handler, e.sandboxOptions(pod, f.Runtime, attempt))
	// Before the result is looked at: the turn is for the runtime's work alone.
	release()
	made := time.Since(begun)
	mountErr := <-mounted
	e.cfg.Metrics.StartedPod(pod, handler, made, err)
	if err != nil {
		if ctx.Err() == nil {
			e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox",
				fmt.Sprintf("Failed to create pod sandbox: %v", errors.Unwrap(err)))
		}
		return err
	}
	e.cfg.Log.Debug("pod sandbox made", "pod", runtime.FullName(pod), "sandbox", id)
	e.spans.didSandbox(pod, id, begun, begun.Add(made))
	return mountErr
}

// hostUsers returns why a pod that asks for user namespaces cannot have them, nil if it can. Such a pod must not fall
// back to the node's users: it would get more rights than its author meant.
func (e *Executor) hostUsers(pod *corev1.Pod, handler string) error {
	const refused = "can't set `spec.hostUsers: false`, "
	switch {
	case !runtime.OwnUsers(pod) || e.cfg.Runtime.Handler(handler).UserNamespaces:
		return nil
	case handler != "":
		return fmt.Errorf(refused+"RuntimeClass handler %q does not support user namespaces", handler)
	}
	return errors.New(refused + "runtime does not support user namespaces")
}

// networkReady returns why a pod of the pod network cannot start yet. Pods of the host network, such as the network's
// own agents, must start without it.
func (e *Executor) networkReady(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.HostNetwork {
		return nil
	}
	return e.cfg.Node.NetworkReady(ctx)
}

// sandboxOptions returns the options of a sandbox. They are computed again for each container and must be the same
// then. Problems of the DNS configuration are shown once, at the pod's first sandbox.
//
// CRI passes them with the sandbox, and again with each container.
func (e *Executor) sandboxOptions(pod *corev1.Pod, rt *runtime.PodStatus, attempt uint32) runtime.SandboxOptions {
	hostname, domain := dns.Hostname(pod, e.cfg.DNS.ClusterDomain)
	if pod.Spec.SetHostnameAsFQDN != nil && *pod.Spec.SetHostnameAsFQDN && domain != "" {
		hostname += "." + domain
	}
	s, problems := e.cfg.DNS.For(pod)
	if attempt == 0 && rt.Sandbox() == nil {
		for _, problem := range problems {
			e.cfg.Events.Pod(pod, corev1.EventTypeWarning, "DNSConfigForming", problem)
		}
	}
	o := runtime.SandboxOptions{Attempt: attempt, Hostname: hostname,
		DNS:          runtime.DNS{Servers: s.Servers, Searches: s.Searches, Options: s.Options},
		LogDirectory: e.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID)}
	e.cfg.Resources.Sandbox(pod, &o)
	return o
}
