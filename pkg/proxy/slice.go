package proxy

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// sliceFacts is what a proxy needs of a discoveryv1.EndpointSlice.
type sliceFacts struct {
	// Service owns the slice; Key names the slice itself.
	Service, Key Name
	Ports        []slicePort
	Endpoints    []sliceEndpoint
	// Six is set for IPv6 addresses. Trigger is when the latest change happened that caused this write of the slice;
	// zero if the slice does not show it.
	Six     bool
	Trigger time.Time
}

// slicePort is a named port of all endpoints of a slice.
type slicePort struct {
	Name     string
	Protocol corev1.Protocol
	Number   uint16
}

// sliceEndpoint is one address with its conditions and whom it is hinted for.
type sliceEndpoint struct {
	Addr                        netip.Addr
	Node                        string
	Ready, Serving, Terminating bool
	ForZones, ForNodes          []string
}

// sliceOf extracts the facts of s. It answers false for a slice that belongs to no service or holds names instead of
// addresses.
func sliceOf(s *discoveryv1.EndpointSlice) (sliceFacts, bool) {
	out := sliceFacts{
		Service: Name{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]},
		Key:     Name{Namespace: s.Namespace, Name: s.Name},
		Six:     s.AddressType == discoveryv1.AddressTypeIPv6,
	}
	if at, err := time.Parse(time.RFC3339Nano, s.Annotations[corev1.EndpointsLastChangeTriggerTime]); err == nil {
		out.Trigger = at
	}
	if out.Service.Name == "" ||
		(s.AddressType != discoveryv1.AddressTypeIPv4 && s.AddressType != discoveryv1.AddressTypeIPv6) {
		return out, false
	}
	for _, p := range s.Ports {
		if p.Port == nil {
			continue
		}
		port := slicePort{Protocol: corev1.ProtocolTCP, Number: uint16(*p.Port)}
		if p.Name != nil {
			port.Name = *p.Name
		}
		if p.Protocol != nil {
			port.Protocol = *p.Protocol
		}
		out.Ports = append(out.Ports, port)
	}
	for i := range s.Endpoints {
		if e, ok := readEndpoint(&s.Endpoints[i]); ok {
			out.Endpoints = append(out.Endpoints, e)
		}
	}
	return out, true
}

// readEndpoint reads one endpoint. Only the first address counts; conditions that are not set mean ready, and serving
// as ready.
func readEndpoint(e *discoveryv1.Endpoint) (sliceEndpoint, bool) {
	if len(e.Addresses) == 0 {
		return sliceEndpoint{}, false
	}
	addr, err := netip.ParseAddr(e.Addresses[0])
	if err != nil {
		return sliceEndpoint{}, false
	}
	ready := e.Conditions.Ready == nil || *e.Conditions.Ready
	out := sliceEndpoint{Addr: addr.Unmap(), Ready: ready, Serving: ready}
	if e.Conditions.Serving != nil {
		out.Serving = *e.Conditions.Serving
	}
	out.Terminating = e.Conditions.Terminating != nil && *e.Conditions.Terminating
	if e.NodeName != nil {
		out.Node = *e.NodeName
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			out.ForZones = append(out.ForZones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			out.ForNodes = append(out.ForNodes, n.Name)
		}
	}
	return out, true
}

// port finds the number behind a service port's name and protocol.
func (s *sliceFacts) port(p servicePort) (uint16, bool) {
	i := slices.IndexFunc(s.Ports, func(sp slicePort) bool { return sp.Name == p.Name && sp.Protocol == p.Protocol })
	if i < 0 {
		return 0, false
	}
	return s.Ports[i].Number, true
}
