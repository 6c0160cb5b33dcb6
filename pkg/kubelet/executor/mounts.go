package executor

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/runtime"
)

// hostsPath is where containers see their hosts file, hostsFile where the node has its own.
const (
	hostsPath = "/etc/hosts"
	hostsFile = "/etc/hosts"
)

// mountInput is what a container's mounts depend on besides its spec and the pod's volumes.
type mountInput struct {
	vars []env.Var
	// images are the images of its image volumes.
	images map[string]string
	// handler is what runs it.
	handler runtime.Handler
}

// mounts lists what is mounted into a container: its volumes, its hosts file and the file of its termination message. A
// volume at /etc/hosts replaces the kubelet's file.
func (e *Executor) mounts(pod *corev1.Pod, p *Pod, c *corev1.Container, ips []string,
	given mountInput) ([]runtime.Mount, error) {
	var out []runtime.Mount
	hosts := true
	for i, m := range c.VolumeMounts {
		x, err := e.volumeMount(pod, p, c, i, m, given)
		if err != nil {
			return nil, err
		}
		hosts = hosts && x.ContainerPath != hostsPath
		out = append(out, x)
	}
	if hosts && (len(ips) > 0 || pod.Spec.HostNetwork) {
		path, err := e.writeHosts(pod, ips)
		if err != nil {
			return nil, err
		}
		out = append(out, runtime.Mount{ContainerPath: hostsPath, HostPath: path})
	}
	if c.TerminationMessagePath != "" {
		path, err := e.cfg.Volumes.TerminationLog(pod.UID, c.Name)
		if err != nil {
			return nil, fmt.Errorf("make the termination message file: %w", err)
		}
		out = append(out, runtime.Mount{ContainerPath: c.TerminationMessagePath, HostPath: path})
	}
	return out, nil
}

// volumeMount resolves one volumeMount. A subPath is made below the volume by Volumes, which defends against links that
// lead out of it; that of an image volume is the runtime's.
//
// Whatever the spec asks for and cannot be had is an error, and the container waits with it: no mount is left out
// silently.
func (e *Executor) volumeMount(pod *corev1.Pod, p *Pod, c *corev1.Container, i int, m corev1.VolumeMount,
	given mountInput) (runtime.Mount, error) {
	v, ok := p.mounts[m.Name]
	if !ok || v.Device {
		return runtime.Mount{}, fmt.Errorf("cannot find volume %q to mount into container %q", m.Name, c.Name)
	}
	path, sub := v.HostPath, m.SubPath
	if m.SubPathExpr != "" {
		var err error
		if sub, err = env.SubPath(m.SubPathExpr, given.vars); err != nil {
			return runtime.Mount{}, err
		}
	}
	if sub != "" && v.Image == nil {
		var err error
		if path, err = e.cfg.Volumes.SubPath(pod, c.Name, i, m.Name, v, sub); err != nil {
			return runtime.Mount{}, fmt.Errorf("failed to prepare subPath for volumeMount %q of container %q: %w",
				m.Name, c.Name, err)
		}
	}
	x := runtime.Mount{ContainerPath: m.MountPath, HostPath: path, ReadOnly: m.ReadOnly || v.ReadOnly}
	if v.Image != nil {
		x.Image, x.ImageSubPath = given.images[m.Name], sub
	}
	// A relative path is one from the root.
	if !strings.HasPrefix(x.ContainerPath, "/") {
		x.ContainerPath = "/" + x.ContainerPath
	}
	if m.MountPropagation != nil {
		x.Propagation = *m.MountPropagation
	}
	if m.RecursiveReadOnly != nil && x.ReadOnly {
		switch can := given.handler.RecursiveReadOnlyMounts; {
		// Enabled must not become less (KEP-3857). IfPossible may.
		case *m.RecursiveReadOnly == corev1.RecursiveReadOnlyEnabled && !can:
			return runtime.Mount{}, fmt.Errorf("recursive read-only mount %q is not supported by the container runtime",
				m.Name)
		case *m.RecursiveReadOnly != corev1.RecursiveReadOnlyDisabled:
			x.RecursiveReadOnly = can
		}
	}
	return x, nil
}

// volumeDevices lists the volumes that a container gets as block devices.
func volumeDevices(p *Pod, c *corev1.Container) ([]runtime.Device, error) {
	var out []runtime.Device
	for _, d := range c.VolumeDevices {
		v, ok := p.mounts[d.Name]
		if !ok || !v.Device {
			return nil, fmt.Errorf("cannot find volume %q to pass into container %q", d.Name, c.Name)
		}
		permissions := "mrw"
		if v.ReadOnly {
			permissions = "r"
		}
		out = append(out, runtime.Device{ContainerPath: d.DevicePath, HostPath: v.HostPath, Permissions: permissions})
	}
	return out, nil
}

// writeHosts writes the pod's hosts file: for the host network, the node's own with the pod's aliases.
//
// It is written again for each container, because the addresses may have changed with the sandbox.
func (e *Executor) writeHosts(pod *corev1.Pod, ips []string) (string, error) {
	var content []byte
	if pod.Spec.HostNetwork {
		node, err := os.ReadFile(hostsFile)
		if err != nil {
			return "", fmt.Errorf("read the node's hosts file: %w", err)
		}
		content = dns.HostNetworkHosts(node, pod.Spec.HostAliases)
	} else {
		hostname, domain := dns.Hostname(pod, e.cfg.DNS.ClusterDomain)
		content = dns.Hosts(ips, hostname, domain, pod.Spec.HostAliases)
	}
	path, err := e.cfg.Volumes.WriteHosts(pod.UID, content)
	if err != nil {
		return "", fmt.Errorf("write the pod's hosts file: %w", err)
	}
	return path, nil
}

// handler returns what the runtime handler of the pod's sandbox can do; nothing without a sandbox.
func (e *Executor) handler(rt *runtime.PodStatus) runtime.Handler {
	if s := rt.Sandbox(); s != nil {
		return e.cfg.Runtime.Handler(s.Handler)
	}
	return runtime.Handler{}
}

// podIPs returns the pod's addresses: its sandbox's, or the node's for the host network.
func (e *Executor) podIPs(pod *corev1.Pod, rt *runtime.PodStatus) []string {
	if pod.Spec.HostNetwork {
		return e.cfg.Node.HostIPs()
	}
	if s := rt.Sandbox(); s != nil {
		return s.IPs
	}
	return nil
}
