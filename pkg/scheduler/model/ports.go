package model

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
)

// HostPort is one port of the node that a pod takes. An empty IP means every address.
type HostPort struct {
	Protocol corev1.Protocol
	IP       string
	Port     int32
}

const anyIP = "0.0.0.0"

// Conflicts is true when both cannot be taken on one node.
func (p HostPort) Conflicts(o HostPort) bool {
	return p.Port == o.Port && p.Protocol == o.Protocol && (p.IP == o.IP || p.IP == anyIP || o.IP == anyIP)
}

// hostPorts collects the host ports of the containers and of the restartable init containers.
func hostPorts(pod *corev1.Pod) []HostPort {
	var out []HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			h := HostPort{Protocol: p.Protocol, IP: p.HostIP, Port: p.HostPort}
			if h.Protocol == "" {
				h.Protocol = corev1.ProtocolTCP
			}
			if h.IP == "" {
				h.IP = anyIP
			}
			out = append(out, h)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; podspec.IsSidecar(c) {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return out
}
