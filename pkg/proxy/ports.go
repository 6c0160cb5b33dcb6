package proxy

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// location is where the proxy runs: the decisions hold for this node, in its zone.
type location struct{ Name, Zone string }

// Port is one port of a service in one IP family, with everything decided: a backend only writes it down.
type Port struct {
	Service  Name
	PortName string
	Protocol corev1.Protocol
	// ClusterIP tells the family of all addresses of the Port.
	ClusterIP        netip.Addr
	Number, NodePort uint16
	ExternalIPs      []netip.Addr
	LoadBalancerIPs  []netip.Addr
	SourceRanges     []netip.Prefix
	AffinitySeconds  int32

	// Cluster are the endpoints for traffic that may leave the node; Local those for policy Local, on this node only.
	Cluster, Local []netip.AddrPort
	// Here are those of Cluster that may be on this node: a client there may be balanced to itself.
	Here []netip.AddrPort
	// InternalLocal and ExternalLocal choose Local for clients inside (of the cluster IP) and outside the cluster.
	InternalLocal, ExternalLocal bool
	// Anywhere is set if some endpoint exists on some node. A policy Local without endpoints here then drops traffic,
	// which may work elsewhere, instead of refusing it.
	Anywhere bool
}

// Internal are the endpoints behind the cluster IP.
func (p *Port) Internal() []netip.AddrPort {
	if p.InternalLocal {
		return p.Local
	}
	return p.Cluster
}

// External are the endpoints for clients from outside the cluster.
func (p *Port) External() []netip.AddrPort {
	if p.ExternalLocal {
		return p.Local
	}
	return p.Cluster
}

// Exposed is set if the port can be reached at other addresses than the cluster IP.
func (p *Port) Exposed() bool {
	return p.NodePort != 0 || len(p.ExternalIPs) > 0 || len(p.LoadBalancerIPs) > 0
}

// portsOf decides about every port of s, per family of its cluster IPs, as seen from node.
func portsOf(s serviceFacts, slices []sliceFacts, node location) []Port {
	var out []Port
	for _, ip := range s.ClusterIPs {
		for _, sp := range s.Ports {
			p := Port{
				Service: s.Name, PortName: sp.Name, Protocol: sp.Protocol, ClusterIP: ip, Number: sp.Number,
				NodePort:    sp.NodePort,
				ExternalIPs: family(s.ExternalIPs, ip), LoadBalancerIPs: family(s.LoadBalancerIPs, ip),
				SourceRanges:    familyOf(s.SourceRanges, ip),
				AffinitySeconds: s.AffinitySeconds, InternalLocal: s.InternalLocal, ExternalLocal: s.ExternalLocal,
			}
			p.choose(candidates(slices, sp, ip), node)
			out = append(out, p)
		}
	}
	return out
}

// candidate is an endpoint that could serve a port.
type candidate struct {
	sliceEndpoint
	addr netip.AddrPort
}

// candidates collects the endpoints of a port in ip's family, ordered by address, each address once; of two entries for
// one address (a pod moving between slices) the ready one counts.
func candidates(all []sliceFacts, sp servicePort, ip netip.Addr) []candidate {
	var out []candidate
	for i := range all {
		number, ok := all[i].port(sp)
		if !ok {
			continue
		}
		for _, e := range all[i].Endpoints {
			if e.Addr.Is4() == ip.Is4() {
				out = append(out, candidate{e, netip.AddrPortFrom(e.Addr, number)})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(a.addr.Compare(b.addr), cmp.Compare(rank(a), rank(b)))
	})
	return slices.CompactFunc(out, func(a, b candidate) bool { return a.addr == b.addr })
}

func rank(c candidate) int {
	switch {
	case c.Ready:
		return 0
	case c.Serving:
		return 1
	}
	return 2
}

// choose fills in the endpoints. Ready ones serve; where there are none, those that still answer while they terminate
// do.
func (p *Port) choose(all []candidate, node location) {
	ready := filter(all, func(c candidate) bool { return c.Ready })
	draining := filter(all, func(c candidate) bool { return c.Serving && c.Terminating })
	p.Anywhere = len(ready)+len(draining) > 0

	if !p.InternalLocal || p.Exposed() {
		cluster := hinted(ready, node)
		if len(cluster) == 0 {
			cluster = draining
		}
		p.Cluster = endpointAddrs(cluster)
		p.Here = endpointAddrs(filter(cluster, func(c candidate) bool { return c.Node == "" || c.Node == node.Name }))
	}
	if p.InternalLocal || (p.ExternalLocal && p.Exposed()) {
		here := func(c candidate) bool { return c.Node != "" && c.Node == node.Name }
		local := filter(ready, here)
		if len(local) == 0 {
			local = filter(draining, here)
		}
		p.Local = endpointAddrs(local)
	}
}

// hinted narrows ready endpoints to those meant for the node, else to those for its zone, if every endpoint has such a
// hint and one of them is for here; otherwise hints are ignored and all serve (EndpointSlice API, "hints").
func hinted(ready []candidate, node location) []candidate {
	nodes, zones := len(ready) > 0, len(ready) > 0 && node.Zone != ""
	for _, c := range ready {
		nodes = nodes && len(c.ForNodes) > 0
		zones = zones && len(c.ForZones) > 0
	}
	if nodes {
		hinted := func(c candidate) bool { return slices.Contains(c.ForNodes, node.Name) }
		if out := filter(ready, hinted); len(out) > 0 {
			return out
		}
	}
	if zones {
		hinted := func(c candidate) bool { return slices.Contains(c.ForZones, node.Zone) }
		if out := filter(ready, hinted); len(out) > 0 {
			return out
		}
	}
	return ready
}

// filter returns the candidates for which ok holds, in their order.
func filter(in []candidate, ok func(candidate) bool) []candidate {
	var out []candidate
	for _, c := range in {
		if ok(c) {
			out = append(out, c)
		}
	}
	return out
}

func endpointAddrs(in []candidate) []netip.AddrPort {
	var out []netip.AddrPort
	for _, c := range in {
		out = append(out, c.addr)
	}
	return out
}

func family(in []netip.Addr, ip netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range in {
		if a.Is4() == ip.Is4() {
			out = append(out, a)
		}
	}
	return out
}

func familyOf(in []netip.Prefix, ip netip.Addr) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range in {
		if p.Addr().Is4() == ip.Is4() {
			out = append(out, p)
		}
	}
	return out
}
