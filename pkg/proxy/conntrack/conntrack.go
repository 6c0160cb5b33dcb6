// Package conntrack forgets connections of UDP services to endpoints that are gone. Such a "connection" would live on as long as
// the client keeps sending, and lead all its packets to nowhere.
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

// Table is the kernel's connection tracking table. Use it after the packet filter of the same round: entries made by old rules
// must be looked for when those rules are gone.
type Table struct {
	// had are the UDP ports of each service at the last round, so that those of a service that is gone are known.
	had map[proxy.Name][]proxy.Port
}

// New returns a table that knows no services yet.
func New() *Table { return &Table{had: map[proxy.Name][]proxy.Port{}} }

// Apply deletes the entries that lead from changed UDP services to something that is not an endpoint of theirs any more.
func (t *Table) Apply(_ context.Context, u proxy.Update) error {
	f := newFilter(u.Addresses)
	for name, ports := range u.Services {
		var udp []proxy.Port
		for _, p := range ports {
			if p.Protocol == corev1.ProtocolUDP {
				udp = append(udp, p)
			}
		}
		for _, p := range t.had[name] {
			f.watch(&p)
		}
		for _, p := range udp {
			f.watch(&p)
			f.allow(&p)
		}
		if delete(t.had, name); len(udp) > 0 {
			t.had[name] = udp
		}
	}
	var errs []error
	for six, family := range map[bool]netlink.InetFamily{false: unix.AF_INET, true: unix.AF_INET6} {
		if !f.families[six] {
			continue
		}
		if _, err := netlink.ConntrackDeleteFilters(netlink.ConntrackTable, family, f); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("delete stale UDP connections: %w", err))
		}
	}
	return errors.Join(errs...)
}

// filter selects stale flows: to an address of a service, answered by none of its endpoints.
type filter struct {
	local     []netip.Addr
	families  map[bool]bool // by "is IPv6"
	endpoints map[netip.AddrPort]map[netip.AddrPort]bool
}

func newFilter(local []netip.Addr) *filter {
	return &filter{local: local, families: map[bool]bool{}, endpoints: map[netip.AddrPort]map[netip.AddrPort]bool{}}
}

// addresses lists where clients of p send to.
func (f *filter) addresses(p *proxy.Port) []netip.AddrPort {
	out := []netip.AddrPort{netip.AddrPortFrom(p.ClusterIP, p.Number)}
	for _, a := range p.ExternalIPs {
		out = append(out, netip.AddrPortFrom(a, p.Number))
	}
	for _, a := range p.LoadBalancerIPs {
		out = append(out, netip.AddrPortFrom(a, p.Number))
	}
	if p.NodePort != 0 {
		for _, a := range f.local {
			if a.Is4() == p.ClusterIP.Is4() {
				out = append(out, netip.AddrPortFrom(a, p.NodePort))
			}
		}
	}
	return out
}

// watch makes flows to p stale unless an endpoint is allowed.
func (f *filter) watch(p *proxy.Port) {
	f.families[p.ClusterIP.Is6()] = true
	for _, a := range f.addresses(p) {
		if f.endpoints[a] == nil {
			f.endpoints[a] = map[netip.AddrPort]bool{}
		}
	}
}

// allow keeps flows to p's endpoints.
func (f *filter) allow(p *proxy.Port) {
	for _, a := range f.addresses(p) {
		for _, e := range p.Cluster {
			f.endpoints[a][e] = true
		}
		for _, e := range p.Local {
			f.endpoints[a][e] = true
		}
	}
}

// MatchConntrackFlow tells whether flow is stale. The answer's source is the endpoint; a flow that no rule translated has the
// service's own address there, which is no endpoint either.
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
