package cri

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"
	resourcehelper "k8s.io/component-helpers/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// sandboxTimeout bounds the making of a sandbox, which waits for the pod network.
const sandboxTimeout = 4 * time.Minute

// RunSandbox makes and starts a pod's sandbox and returns its id. If the time is over, the runtime may still make it.
// The caller finds such a sandbox in the next list of the runtime's, by its labels.
func (c *Client) RunSandbox(ctx context.Context, pod *corev1.Pod, handler string, o runtime.SandboxOptions) (string,
	error) {
	ctx, cancel := context.WithTimeout(ctx, sandboxTimeout)
	defer cancel()
	r, err := c.runtime.RunPodSandbox(ctx,
		&runtimeapi.RunPodSandboxRequest{Config: sandboxConfig(pod, o, c.containers), RuntimeHandler: handler})
	if err != nil {
		return "", fmt.Errorf("run pod sandbox: %w", err)
	}
	return r.PodSandboxId, nil
}

// StopSandbox stops the sandbox and tears its network down; one that is gone is no error.
func (c *Client) StopSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if _, err := c.runtime.StopPodSandbox(ctx,
		&runtimeapi.StopPodSandboxRequest{PodSandboxId: id}); err != nil && !notFound(err) {
		return fmt.Errorf("stop pod sandbox %s: %w", id, err)
	}
	return nil
}

// RemoveSandbox removes a stopped sandbox with its containers; one that is gone is no error.
func (c *Client) RemoveSandbox(ctx context.Context, id string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if _, err := c.runtime.RemovePodSandbox(ctx,
		&runtimeapi.RemovePodSandboxRequest{PodSandboxId: id}); err != nil && !notFound(err) {
		return fmt.Errorf("remove pod sandbox %s: %w", id, err)
	}
	return nil
}

// sandboxConfig returns the runtime's description of a pod. CreateContainer sends the same description again with each
// container. Overhead and Resources are hints for runtimes that make a virtual machine; the kubelet sets the pod's
// cgroup itself.
func sandboxConfig(pod *corev1.Pod, o runtime.SandboxOptions, all Containers) *runtimeapi.PodSandboxConfig {
	cfg := &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID),
			Attempt: o.Attempt},
		Hostname: o.Hostname, LogDirectory: o.LogDirectory,
		DnsConfig:   &runtimeapi.DNSConfig{Servers: o.DNS.Servers, Searches: o.DNS.Searches, Options: o.DNS.Options},
		Labels:      sandboxLabels(pod),
		Annotations: maps.Clone(pod.Annotations),
		Linux: &runtimeapi.LinuxPodSandboxConfig{CgroupParent: o.CgroupParent,
			SecurityContext: sandboxSecurity(pod, o.Users), Sysctls: sysctls(pod),
			Overhead: all.podResources(pod.Spec.Overhead, pod.Spec.Overhead), Resources: all.sandboxResources(pod)},
	}
	if !pod.Spec.HostNetwork {
		cfg.PortMappings = portMappings(pod)
	} else {
		cfg.Hostname = "" // the sandbox keeps the node's name
	}
	return cfg
}

func sandboxLabels(pod *corev1.Pod) map[string]string {
	l := maps.Clone(pod.Labels)
	if l == nil {
		l = map[string]string{}
	}
	l[labelPodName], l[labelPodNamespace], l[labelPodUID] = pod.Name, pod.Namespace,
		string(pod.UID)
	return l
}

func portMappings(pod *corev1.Pod) []*runtimeapi.PortMapping {
	var out []*runtimeapi.PortMapping
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, ct := range list {
			for _, p := range ct.Ports {
				if p.HostPort <= 0 {
					continue
				}
				m := &runtimeapi.PortMapping{HostIp: p.HostIP, HostPort: p.HostPort, ContainerPort: p.ContainerPort}
				switch p.Protocol {
				case corev1.ProtocolUDP:
					m.Protocol = runtimeapi.Protocol_UDP
				case corev1.ProtocolSCTP:
					m.Protocol = runtimeapi.Protocol_SCTP
				}
				out = append(out, m)
			}
		}
	}
	return out
}

// sysctls are written with dots, as the runtime wants them; slashes are the alternative spelling.
func sysctls(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	if pod.Spec.SecurityContext == nil {
		return out
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		out[sysctl.NormalizeName(s.Name)] = s.Value
	}
	return out
}

func (c Containers) sandboxResources(pod *corev1.Pod) *runtimeapi.LinuxContainerResources {
	opts := resourcehelper.PodResourcesOptions{ExcludeOverhead: true}
	return c.podResources(resourcehelper.PodRequests(pod, opts), resourcehelper.PodLimits(pod, opts))
}

func (c Containers) podResources(requests, limits corev1.ResourceList) *runtimeapi.LinuxContainerResources {
	r := &runtimeapi.LinuxContainerResources{CpuShares: shares(requests.Cpu().MilliValue()),
		MemoryLimitInBytes: limits.Memory().Value()}
	c.limitCPU(r, limits.Cpu().MilliValue())
	return r
}
