package endpointslice

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/api/podspec"
	"bonsai/pkg/controller"
)

// families returns the address types that a Service needs slices for, one slice set each. A Service from before
// dual-stack has no ipFamilies; its cluster IP decides then, and IPv4 is the default.
func families(svc *corev1.Service) []discoveryv1.AddressType {
	var out []discoveryv1.AddressType
	for _, f := range svc.Spec.IPFamilies {
		if f == corev1.IPv6Protocol {
			out = append(out, discoveryv1.AddressTypeIPv6)
		} else {
			out = append(out, discoveryv1.AddressTypeIPv4)
		}
	}
	if len(out) > 0 {
		return out
	}
	if ip, err := netip.ParseAddr(svc.Spec.ClusterIP); err == nil && ip.Is6() {
		return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv6}
	}
	return []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4}
}

// portGroup is the endpoints that offer the same ports. A slice has one list of ports for all of its endpoints. Pods
// differ in theirs if a named target port has different numbers in them.
type portGroup struct {
	ports     []discoveryv1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// group turns the pods behind a Service into endpoints of one family, by the ports they offer. zone returns a node's
// zone, and whether the node exists.
//
// Left out are: pods that have ended; pods without an address of the family; pods whose node does not exist, unless the
// Service publishes addresses that are not ready. Such a pod is about to be deleted, and traffic to it would be lost.
func group(svc *corev1.Service, family discoveryv1.AddressType, pods []*corev1.Pod,
	zone func(node string) (string, bool)) map[string]*portGroup {
	groups := map[string]*portGroup{}
	for _, p := range pods {
		if controller.PodTerminal(p) {
			continue
		}
		addr := address(p, family)
		if addr == "" {
			continue
		}
		at, there := zone(p.Spec.NodeName)
		if p.Spec.NodeName != "" && !there && !svc.Spec.PublishNotReadyAddresses {
			continue
		}
		ports := portsOf(svc, p)
		key := portKey(ports)
		if groups[key] == nil {
			groups[key] = &portGroup{ports: ports}
		}
		groups[key].endpoints = append(groups[key].endpoints, endpointOf(svc, p, addr, at))
	}
	for _, g := range groups {
		// One order in every round: without it equal states would look different, and be written again.
		slices.SortFunc(g.endpoints, func(a, b discoveryv1.Endpoint) int {
			return strings.Compare(endpointKey(a), endpointKey(b))
		})
		hint(svc, g.endpoints)
	}
	return groups
}

// address returns the pod's address of a family, "" if it has none yet.
//
// A pod has at most one address of each family (podIPs).
func address(p *corev1.Pod, family discoveryv1.AddressType) string {
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is6() == (family == discoveryv1.AddressTypeIPv6) {
			return ip.IP
		}
	}
	return ""
}

// endpointOf describes one pod. A terminating pod is never ready, but serves as long as its probe says so: kube-proxy
// falls back to such endpoints when no ready one is left (KEP-1672).
func endpointOf(svc *corev1.Service, p *corev1.Pod, addr, zone string) discoveryv1.Endpoint {
	serving := controller.PodReady(p)
	terminating := p.DeletionTimestamp != nil
	ready := svc.Spec.PublishNotReadyAddresses || serving && !terminating
	e := discoveryv1.Endpoint{
		Addresses:  []string{addr},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
	if p.Spec.NodeName != "" {
		e.NodeName = new(p.Spec.NodeName)
	}
	if zone != "" {
		e.Zone = &zone
	}
	if p.Spec.Hostname != "" && p.Spec.Subdomain == svc.Name && p.Namespace == svc.Namespace {
		e.Hostname = new(p.Spec.Hostname)
	}
	return e
}

// endpointKey identifies an endpoint: the pod behind it.
//
// The uid tells a pod from its successor of the same name (a StatefulSet's), the address a pod that was restarted with
// another one.
func endpointKey(e discoveryv1.Endpoint) string {
	if e.TargetRef == nil {
		return e.Addresses[0]
	}
	return e.TargetRef.Name + "/" + string(e.TargetRef.UID) + "/" + e.Addresses[0]
}

// hint says where traffic should come from, if the Service asks for a distribution (KEP-4444, KEP-3015): the endpoint's
// own zone, or also its node. Only ready endpoints get one. A Service in topology mode Auto gets its hints from
// topology instead.
func hint(svc *corev1.Service, endpoints []discoveryv1.Endpoint) {
	if svc.Spec.TrafficDistribution == nil || modeAuto(svc) {
		return
	}
	sameNode := *svc.Spec.TrafficDistribution == "PreferSameNode"
	switch *svc.Spec.TrafficDistribution {
	case corev1.ServiceTrafficDistributionPreferClose, "PreferSameZone", "PreferSameNode":
	default:
		return
	}
	for i := range endpoints {
		e := &endpoints[i]
		if !*e.Conditions.Ready {
			continue
		}
		h := &discoveryv1.EndpointHints{}
		if e.Zone != nil {
			h.ForZones = []discoveryv1.ForZone{{Name: *e.Zone}}
		}
		if sameNode && e.NodeName != nil {
			h.ForNodes = []discoveryv1.ForNode{{Name: *e.NodeName}}
		}
		if h.ForZones != nil || h.ForNodes != nil {
			e.Hints = h
		}
	}
}

// portsOf resolves the Service's ports on a pod. A named target port that the pod does not have is left out.
//
// The list may be empty, which is another group than any with ports: such a pod is reachable, for headless Services,
// but not by a port.
func portsOf(svc *corev1.Service, p *corev1.Pod) []discoveryv1.EndpointPort {
	out := []discoveryv1.EndpointPort{}
	for i := range svc.Spec.Ports {
		sp := &svc.Spec.Ports[i]
		n, ok := targetPort(sp, p)
		if !ok {
			continue
		}
		protocol := sp.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		out = append(out, discoveryv1.EndpointPort{Name: new(sp.Name), Port: &n, Protocol: &protocol,
			AppProtocol: sp.AppProtocol})
	}
	return out
}

// targetPort resolves the target port of a Service's port on a pod. 0 means the Service's own port. Names are looked up
// in the containers and sidecars, which are the ones that run as long as the pod.
func targetPort(sp *corev1.ServicePort, p *corev1.Pod) (int32, bool) {
	if sp.TargetPort.Type == intstr.Int {
		if sp.TargetPort.IntVal == 0 {
			return sp.Port, true
		}
		return sp.TargetPort.IntVal, true
	}
	for _, c := range p.Spec.Containers {
		if n, ok := namedPort(c, sp); ok {
			return n, true
		}
	}
	for _, c := range p.Spec.InitContainers {
		if podspec.IsSidecar(&c) {
			if n, ok := namedPort(c, sp); ok {
				return n, true
			}
		}
	}
	return 0, false
}

func namedPort(c corev1.Container, sp *corev1.ServicePort) (int32, bool) {
	for _, port := range c.Ports {
		if port.Name == sp.TargetPort.StrVal && port.Protocol == sp.Protocol {
			return port.ContainerPort, true
		}
	}
	return 0, false
}

// portKey is equal for equal sets of ports.
//
// The order of ports in a Service does not matter, hence the sorting.
func portKey(ports []discoveryv1.EndpointPort) string {
	parts := make([]string, len(ports))
	for i, p := range ports {
		var b strings.Builder
		if p.Name != nil {
			b.WriteString(*p.Name)
		}
		b.WriteByte('|')
		if p.Port != nil {
			b.WriteString(strconv.Itoa(int(*p.Port)))
		}
		b.WriteByte('|')
		if p.Protocol != nil {
			b.WriteString(string(*p.Protocol))
		}
		b.WriteByte('|')
		if p.AppProtocol != nil {
			b.WriteString(*p.AppProtocol)
		}
		parts[i] = b.String()
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
