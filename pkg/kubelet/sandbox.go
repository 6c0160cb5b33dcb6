package kubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// prepareRunning prepares the ground of a pod that runs already when the kubelet starts, so that its volumes stay fresh.
func (k *Kubelet) prepareRunning(ctx context.Context, pod *corev1.Pod, st *podState, rt *runtime.PodStatus) error {
	if !rt.SandboxReady() {
		return nil // the making of its sandbox does it
	}
	return k.prepare(ctx, pod, st)
}

// prepare makes the pod's cgroup, its directories and its volumes.
func (k *Kubelet) prepare(ctx context.Context, pod *corev1.Pod, st *podState) error {
	if err := k.makeGround(pod, st); err != nil {
		return err
	}
	return k.mount(ctx, pod, st)
}

func (k *Kubelet) makeGround(pod *corev1.Pod, st *podState) error {
	parent, err := k.cgroups.CreatePod(pod)
	if err != nil {
		k.podEvent(pod, corev1.EventTypeWarning, "FailedCreatePodContainer", "unable to ensure pod container exists: "+err.Error())
		return fmt.Errorf("make the pod's cgroup: %w", err)
	}
	st.cgroupParent = parent
	if err := os.MkdirAll(k.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID), 0o755); err != nil {
		return fmt.Errorf("make the pod's log directory: %w", err)
	}
	return nil
}

func (k *Kubelet) mount(ctx context.Context, pod *corev1.Pod, st *podState) error {
	begun := time.Now()
	mounts, err := k.volumes.Mount(ctx, pod)
	if err != nil {
		if ctx.Err() == nil {
			k.podEvent(pod, corev1.EventTypeWarning, "FailedMount", err.Error())
		}
		return fmt.Errorf("mount the volumes: %w", err)
	}
	st.mounts, st.prepared = mounts, true
	trace.Step(ctx, k.log, pod, "kubelet.volumes", begun, time.Now())
	return nil
}

// newSandbox makes a sandbox; the volumes are mounted meanwhile.
func (k *Kubelet) newSandbox(ctx context.Context, f lifecycle.Facts, st *podState, attempt uint32) error {
	pod := f.Pod
	if err := k.networkReady(ctx, pod); err != nil {
		k.podEvent(pod, corev1.EventTypeWarning, "NetworkNotReady", "network is not ready: "+err.Error())
		return fmt.Errorf("network is not ready: %w", err)
	}
	if err := k.makeGround(pod, st); err != nil {
		return err
	}
	mounted := make(chan error, 1)
	go func() { mounted <- k.mount(ctx, pod, st) }()
	begun := time.Now()
	id, err := k.cri.RunSandbox(ctx, pod, k.runtimeHandler(pod), k.sandboxOptions(pod, st, attempt))
	mountErr := <-mounted
	k.metrics.startedPod(err)
	if err != nil {
		if ctx.Err() == nil {
			k.podEvent(pod, corev1.EventTypeWarning, "FailedCreatePodSandBox", fmt.Sprintf("Failed to create pod sandbox: %v", errors.Unwrap(err)))
		}
		return err
	}
	k.log.Debug("pod sandbox made", "pod", fullName(pod), "sandbox", id)
	trace.Step(ctx, k.log, pod, "kubelet.sandbox", begun, time.Now())
	return mountErr
}

// networkReady tells why a pod of the pod network cannot start yet.
func (k *Kubelet) networkReady(ctx context.Context, pod *corev1.Pod) error {
	h := k.health.Load()
	if pod.Spec.HostNetwork || (h != nil && h.NetworkReady) {
		return nil
	}
	now, err := k.cri.Health(ctx)
	if err != nil {
		return err
	}
	k.health.Store(&now)
	if !now.NetworkReady {
		return fmt.Errorf("container runtime network not ready: NetworkReady=false reason:%s message:%s", now.NetworkReason, now.NetworkMessage)
	}
	k.node.Poke()
	return nil
}

// runtimeHandler is the runtime's own handler: RuntimeClass objects are not read.
func (k *Kubelet) runtimeHandler(*corev1.Pod) string { return "" }

func (k *Kubelet) sandboxOptions(pod *corev1.Pod, st *podState, attempt uint32) runtime.SandboxOptions {
	hostname, domain := dns.Hostname(pod, k.cfg.DNS.ClusterDomain)
	if pod.Spec.SetHostnameAsFQDN != nil && *pod.Spec.SetHostnameAsFQDN && domain != "" {
		hostname += "." + domain
	}
	s, problems := k.cfg.DNS.For(pod)
	if attempt == 0 && st.runtime.Sandbox() == nil {
		for _, p := range problems {
			k.podEvent(pod, corev1.EventTypeWarning, "DNSConfigForming", p)
		}
	}
	return runtime.SandboxOptions{Attempt: attempt, Hostname: hostname, CgroupParent: st.cgroupParent,
		DNS:          runtime.DNS{Servers: s.Servers, Searches: s.Searches, Options: s.Options},
		LogDirectory: k.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID)}
}
