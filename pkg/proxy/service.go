// Package proxy decides how a node forwards traffic to Services: which endpoints a service port is balanced over, for
// clients inside and outside the cluster, and what happens when there are none. It is pure: objects go in, Ports come
// out. State collects the objects, Loop hands what changed to backends (a packet filter, the routing table, connection
// tracking).
package proxy

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Name names a Service.
type Name = types.NamespacedName

// serviceFacts is what a proxy needs of a corev1.Service; nothing else of the object is kept.
type serviceFacts struct {
	Name            Name
	ClusterIPs      []netip.Addr
	ExternalIPs     []netip.Addr
	LoadBalancerIPs []netip.Addr
	// SourceRanges limits who may use the LoadBalancerIPs; empty lets everyone.
	SourceRanges []netip.Prefix
	Ports        []servicePort
	// AffinitySeconds is how long a client stays with its endpoint; 0 is no affinity.
	AffinitySeconds int32
	// InternalLocal and ExternalLocal are the traffic policies "Local".
	InternalLocal, ExternalLocal bool
	// HealthCheckPort is where load balancers ask whether the node has endpoints; 0 is none.
	HealthCheckPort uint16
}

// servicePort is one port of a Service. NodePort is 0 where there is none.
type servicePort struct {
	Name             string
	Protocol         corev1.Protocol
	Number, NodePort uint16
}

// serviceOf extracts the facts of s. It answers false for a service that no proxy serves: headless and external names.
func serviceOf(s *corev1.Service) (serviceFacts, bool) {
	name := Name{Namespace: s.Namespace, Name: s.Name}
	if s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == "" ||
		s.Spec.ClusterIP == corev1.ClusterIPNone {
		return serviceFacts{Name: name}, false
	}
	ips := s.Spec.ClusterIPs
	if len(ips) == 0 {
		ips = []string{s.Spec.ClusterIP}
	}
	out := serviceFacts{
		Name:            name,
		ClusterIPs:      addresses(ips),
		ExternalIPs:     addresses(s.Spec.ExternalIPs),
		LoadBalancerIPs: loadBalancerIPs(s),
		SourceRanges:    sourceRanges(s),
		InternalLocal: s.Spec.InternalTrafficPolicy != nil &&
			*s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		ExternalLocal:   s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		HealthCheckPort: uint16(s.Spec.HealthCheckNodePort),
	}
	if s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		out.AffinitySeconds = corev1.DefaultClientIPServiceAffinitySeconds
		if c := s.Spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			out.AffinitySeconds = *c.ClientIP.TimeoutSeconds
		}
	}
	for _, p := range s.Spec.Ports {
		out.Ports = append(out.Ports,
			servicePort{Name: p.Name, Protocol: protocol(p.Protocol), Number: uint16(p.Port),
				NodePort: uint16(p.NodePort)})
	}
	return out, true
}

func protocol(p corev1.Protocol) corev1.Protocol {
	if p == "" {
		return corev1.ProtocolTCP
	}
	return p
}

// loadBalancerIPs are the addresses whose traffic reaches the node as it is; a balancer of ipMode Proxy rewrites it
// before.
func loadBalancerIPs(s *corev1.Service) []netip.Addr {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	var ips []string
	for _, i := range s.Status.LoadBalancer.Ingress {
		if i.IPMode == nil || *i.IPMode == corev1.LoadBalancerIPModeVIP {
			ips = append(ips, i.IP)
		}
	}
	return addresses(ips)
}

func sourceRanges(s *corev1.Service) []netip.Prefix {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	return prefixes(s.Spec.LoadBalancerSourceRanges)
}

// prefixes parses what it can, as the API server lets nothing else through, and brings it in order. There may be blanks
// around a source range: left out, it would let everybody in.
func prefixes(texts []string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil {
			out = append(out, p.Masked())
		}
	}
	slices.SortFunc(out, netip.Prefix.Compare)
	return slices.Compact(out)
}

// addresses parses what it can; the API server lets nothing else through except for names of load balancers.
func addresses(texts []string) []netip.Addr {
	var out []netip.Addr
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(out, a.Unmap()) {
			out = append(out, a.Unmap())
		}
	}
	return out
}
