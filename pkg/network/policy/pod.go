package policy

import (
	"net/netip"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/network"
)

// podFacts is what policies need of a corev1.Pod.
type podFacts struct {
	Labels    map[string]string
	Addresses []netip.Addr
	Ports     []network.PodPort // those with names
	Local     bool
}

// pod is one that lives in the pod network.
type pod struct {
	podFacts
	name      network.Name
	labels    labels.Set
	groups    map[*group]bool
	isolation [2]string // as it was told, only of local pods
}

// podOf extracts the facts of p as the node sees it. It answers false for a pod that policies do not concern: of the
// host's network, at its end, or elsewhere and without an address.
//
// A local pod without an address matters too: what it will be isolated by must be closed before it has one.
func podOf(p *corev1.Pod, node string) (podFacts, bool) {
	if p.Spec.HostNetwork || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed ||
		p.Spec.NodeName == "" {
		return podFacts{}, false
	}
	out := podFacts{Labels: p.Labels, Local: p.Spec.NodeName == node}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			out.Addresses = append(out.Addresses, a.Unmap())
		}
	}
	if a, err := netip.ParseAddr(p.Status.PodIP); err == nil && len(out.Addresses) == 0 {
		out.Addresses = append(out.Addresses, a.Unmap())
	}
	add := func(c *corev1.Container) {
		for _, port := range c.Ports {
			if port.Name == "" {
				continue
			}
			named := network.PodPort{NamedPort: network.NamedPort{Protocol: protocol(&port.Protocol), Name: port.Name},
				Number: uint16(port.ContainerPort)}
			out.Ports = append(out.Ports, named)
		}
	}
	for i := range p.Spec.Containers {
		add(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		if r := p.Spec.InitContainers[i].RestartPolicy; r != nil && *r == corev1.ContainerRestartPolicyAlways {
			add(&p.Spec.InitContainers[i])
		}
	}
	return out, out.Local || len(out.Addresses) > 0
}

// protocol of a port that may not say it.
func protocol(p *corev1.Protocol) corev1.Protocol {
	if p == nil || *p == "" {
		return corev1.ProtocolTCP
	}
	return *p
}

// setPodLocked stores a pod. Unchanged facts, as when only the status says something else, do not fire Changed.
func (s *State) setPodLocked(name network.Name, f podFacts) {
	p := s.pods[name]
	if p != nil && reflect.DeepEqual(p.podFacts, f) {
		return
	}
	// Its isolation and groups were those of the other pod.
	if p != nil && p.Local != f.Local { // another pod of the same name
		s.dropPodLocked(name)
		p = nil
	}
	ns := s.namespaceLocked(name.Namespace)
	if p == nil {
		p = &pod{name: name, groups: map[*group]bool{}}
		s.pods[name], ns.pods[name.Name] = p, p
		if f.Local {
			s.local[name] = p
		}
	}
	p.podFacts, p.labels = f, f.Labels
	for g := range ns.groups {
		s.memberLocked(g, p, g.pods.Matches(p.labels))
	}
	for g := range s.wide {
		s.memberLocked(g, p, g.matchesNamespace(name.Namespace, ns) && g.pods.Matches(p.labels))
	}
	s.touchLocked(p)
}

func (s *State) dropPodLocked(name network.Name) {
	p := s.pods[name]
	if p == nil {
		return
	}
	for g := range p.groups {
		s.memberLocked(g, p, false)
	}
	for _, d := range network.Directions() {
		s.isolateLocked(p, d, nil)
	}
	delete(s.pods, name)
	delete(s.local, name)
	delete(s.namespaces[name.Namespace].pods, name.Name)
	s.forgetLocked(name.Namespace)
	s.touchLocked(p)
}
