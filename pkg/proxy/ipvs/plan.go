package ipvs

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"bonsai/pkg/proxy"
)

// access says who is let in at an address of a port, and whose packets get the node's address.
type access int

// The ways to a port.
const (
	// inside is the cluster IP: pods keep their address, others get the node's.
	inside access = iota
	// outside is any other address with policy Cluster: everybody gets the node's address, since the answer must come
	// back through this node.
	outside
	// kept is any other address with policy Local: everybody outside keeps the address.
	kept
)

// wanted is a virtual server as it should be.
type wanted struct {
	Server
	service proxy.Name
	reals   []netip.AddrPort
	access  access
	// refuse is nil if new connections are let through; else everybody, or all but the node and its pods, are refused.
	refuse *refusal
	// ranges limits who may connect; empty lets everyone.
	ranges []netip.Prefix
	// bound is set if the address belongs on Link: node ports are at addresses that the node has anyway.
	bound bool
}

// refusal is what happens to new connections that no endpoint may serve.
type refusal struct {
	// silent drops, instead of rejecting.
	silent bool
	// outsiders lets pods of the node and the node itself through.
	outsiders bool
}

// plan returns all virtual servers that the services should have. local are the addresses that take node ports. Of two
// services that claim the same address and port, the one that had it keeps it: a new Service takes nothing from an
// older one. owners has who had what, and is brought up to date; conflict receives the claims that were not granted.
func (c *Config) plan(services map[proxy.Name][]proxy.Port, local []netip.Addr, owners map[Key]proxy.Name,
	conflict func(service, owner proxy.Name, key Key)) map[Key]wanted {
	names := make([]proxy.Name, 0, len(services))
	claims := map[proxy.Name]map[Key]wanted{}
	for name, ports := range services {
		names = append(names, name)
		claims[name] = map[Key]wanted{}
		for i := range ports {
			c.claim(claims[name], &ports[i], local)
		}
	}
	slices.SortFunc(names, func(a, b proxy.Name) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for key, owner := range owners {
		if _, still := claims[owner][key]; !still {
			delete(owners, key)
		}
	}
	out := map[Key]wanted{}
	for _, name := range names {
		for key, w := range claims[name] {
			owner, taken := owners[key]
			if taken && owner != name {
				conflict(name, owner, key)
				continue
			}
			owners[key], out[key] = name, w
		}
	}
	return out
}

// claim adds the virtual servers of one port: at the cluster IP, at other addresses, and at node ports.
func (c *Config) claim(into map[Key]wanted, p *proxy.Port, local []netip.Addr) {
	protocol := strings.ToLower(string(p.Protocol))
	w := wanted{service: p.Service, bound: true, reals: p.Internal(), Server: Server{Scheduler: c.Scheduler,
		AffinitySeconds: p.AffinitySeconds, HashPorts: c.Scheduler == schedulerMaglev}}
	if len(w.reals) == 0 {
		w.refuse = &refusal{silent: p.InternalLocal && p.Anywhere}
	}
	at := func(a netip.Addr, port uint16, w wanted) {
		into[Key{At: netip.AddrPortFrom(a, port), Protocol: protocol}] = w
	}
	at(p.ClusterIP, p.Number, w)

	w.access, w.reals, w.refuse = outside, p.Cluster, nil
	if p.ExternalLocal {
		w.access = kept
		if len(p.Local) > 0 {
			w.reals = p.Local
		}
	}
	if len(p.External()) == 0 {
		// With policy Local, pods and the node itself use all endpoints, as they would at the cluster IP.
		w.refuse = &refusal{silent: p.ExternalLocal && p.Anywhere, outsiders: len(w.reals) > 0}
	}
	for _, a := range p.ExternalIPs {
		at(a, p.Number, w)
	}
	balanced := w
	balanced.ranges = p.SourceRanges
	for _, a := range p.LoadBalancerIPs {
		at(a, p.Number, balanced)
	}
	if w.bound = false; p.NodePort != 0 {
		for _, a := range local {
			if a.Is4() == p.ClusterIP.Is4() && !a.IsLoopback() {
				at(a, p.NodePort, w)
			}
		}
	}
}

// bound are the addresses that belong on Link.
func bound(all map[Key]wanted) map[netip.Addr]bool {
	out := map[netip.Addr]bool{}
	for key, w := range all {
		if w.bound {
			out[key.At.Addr()] = true
		}
	}
	return out
}
