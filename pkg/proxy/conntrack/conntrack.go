// Package conntrack forgets connections of UDP services to endpoints that are gone. Such a "connection" would live on
// as long as the client keeps sending, and lead all its packets to nowhere.
package conntrack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/proxy"
)

// Table is the kernel's connection tracking table. Use it after the packet filter of the same round: entries made by
// old rules must be looked for when those rules are gone.
type Table struct {
	// had are the UDP ports of each service at the last round, so that those of a service that is gone are known.
	had map[proxy.Name][]proxy.Port
	// suspect are the addresses of services that changed since the kernel's table was last searched without an error.
	suspect map[netip.AddrPort]bool
	// nodePorts returns local: the machine's addresses that take node ports, as of the last time that they could be
	// read.
	nodePorts NodePorts
	local     []netip.Addr
	// forget deletes the entries of a family that the filter matches.
	forget func(family netlink.InetFamily, f netlink.CustomConntrackFilter) error
}

// NodePorts tells which of the machine's addresses take node ports, by the node's own ones.
type NodePorts func(own []netip.Addr) ([]netip.Addr, error)

// New returns a table that knows no services yet.
func New(nodePorts NodePorts) *Table {
	return &Table{had: map[proxy.Name][]proxy.Port{}, suspect: map[netip.AddrPort]bool{}, nodePorts: nodePorts,
		forget: forget}
}

func forget(family netlink.InetFamily, f netlink.CustomConntrackFilter) error {
	_, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, f)
	return err
}

// Apply deletes the entries that lead from changed UDP services to something that is not an endpoint of theirs any
// more. After an error the next Apply looks for them again.
func (t *Table) Apply(_ context.Context, u proxy.Update) error {
	var errs []error
	if local, err := t.nodePorts(u.Addresses); err == nil {
		t.local = local
	} else {
		errs = append(errs, fmt.Errorf("find what takes node ports: %w", err))
	}
	for name, ports := range u.Services {
		t.suspects(t.had[name])
		delete(t.had, name)
		for _, p := range ports {
			if p.Protocol == corev1.ProtocolUDP {
				t.had[name] = append(t.had[name], p)
			}
		}
		t.suspects(t.had[name])
	}
	f := newFilter(t.suspect)
	for _, ports := range t.had {
		for i := range ports {
			f.allow(&ports[i], t.local)
		}
	}
	for six, family := range map[bool]netlink.InetFamily{false: unix.AF_INET, true: unix.AF_INET6} {
		if !f.families[six] {
			continue
		}
		if err := t.forget(family, f); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("delete stale UDP connections: %w", err))
		}
	}
	if len(errs) == 0 {
		clear(t.suspect)
	}
	return errors.Join(errs...)
}

// suspects notes that flows to these ports may be stale.
func (t *Table) suspects(ports []proxy.Port) {
	for i := range ports {
		for _, a := range addresses(&ports[i], t.local) {
			t.suspect[a] = true
		}
	}
}

// addresses lists where clients of p send to; local are those that take node ports.
func addresses(p *proxy.Port, local []netip.Addr) []netip.AddrPort {
	out := []netip.AddrPort{netip.AddrPortFrom(p.ClusterIP, p.Number)}
	for _, a := range p.ExternalIPs {
		out = append(out, netip.AddrPortFrom(a, p.Number))
	}
	for _, a := range p.LoadBalancerIPs {
		out = append(out, netip.AddrPortFrom(a, p.Number))
	}
	if p.NodePort != 0 {
		for _, a := range local {
			if a.Is4() == p.ClusterIP.Is4() {
				out = append(out, netip.AddrPortFrom(a, p.NodePort))
			}
		}
	}
	return out
}

// filter selects stale flows: to a suspect address, answered by no endpoint that it leads to now.
type filter struct {
	families  map[bool]bool // by "is IPv6"
	endpoints map[netip.AddrPort]map[netip.AddrPort]bool
}

func newFilter(suspect map[netip.AddrPort]bool) *filter {
	f := &filter{families: map[bool]bool{}, endpoints: map[netip.AddrPort]map[netip.AddrPort]bool{}}
	for a := range suspect {
		f.families[a.Addr().Is6()] = true
		f.endpoints[a] = map[netip.AddrPort]bool{}
	}
	return f
}

// allow keeps flows to p's endpoints.
func (f *filter) allow(p *proxy.Port, local []netip.Addr) {
	if len(f.endpoints) == 0 {
		return
	}
	for _, a := range addresses(p, local) {
		live := f.endpoints[a]
		if live == nil {
			continue
		}
		for _, e := range p.Cluster {
			live[e] = true
		}
		for _, e := range p.Local {
			live[e] = true
		}
	}
}

// MatchConntrackFlow reports whether flow is stale. The answer's source is the endpoint; a flow that no rule translated
// has the service's own address there, which is no endpoint either.
func (f *filter) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if flow.Forward.Protocol != unix.IPPROTO_UDP {
		return false
	}
	endpoints, ours := f.endpoints[addrPort(flow.Forward.DstIP, flow.Forward.DstPort)]
	return ours && !endpoints[addrPort(flow.Reverse.SrcIP, flow.Reverse.SrcPort)]
}

func addrPort(ip net.IP, port uint16) netip.AddrPort {
	a, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(a.Unmap(), port)
}
