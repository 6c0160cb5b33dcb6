package machine

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

// hostNetworks lists the addresses of the host and the routes of its main table, except those that carry the cluster's
// own mark: the link by its name, a route by its metric. A start calls it under the machine's lock, to choose networks
// that collide with none of these.
func hostNetworks(c plan.Config) ([]plan.HostNetwork, error) {
	links, err := netdump.Links()
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}
	byIndex := map[int]netlink.Link{}
	for _, l := range links {
		byIndex[l.Attrs().Index] = l
	}
	own := linkNamed(links, c.Mark())
	var found []plan.HostNetwork
	addresses, err := netdump.Addresses(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list the addresses: %w", err)
	}
	for _, a := range addresses {
		link := byIndex[a.LinkIndex]
		if ip, ok := netip.AddrFromSlice(a.IP); ok && (link == nil || link != own) {
			ip = ip.Unmap()
			found = append(found, plan.HostNetwork{
				Prefix: netip.PrefixFrom(ip, ip.BitLen()),
				Claim:  plan.Claim{What: "the address " + a.IPNet.String(), By: linkOwner(links, link)},
			})
		}
	}
	routes, err := netdump.Routes(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN},
		netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, fmt.Errorf("list the routes: %w", err)
	}
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		dst, err := netip.ParsePrefix(r.Dst.String())
		if err != nil {
			continue
		}
		// A route of a cluster may have no link, as the unreachable ones. Its metric is the cluster's ID.
		by, link := "a route of this machine", byIndex[r.LinkIndex]
		// the route to the balancers has a next hop per node, all over one link
		if link == nil && len(r.MultiPath) > 0 {
			link = byIndex[r.MultiPath[0].LinkIndex]
		}
		if link == nil {
			link = linkNamed(links, plan.MarkOf(uint32(r.Priority)))
		}
		if link != nil {
			by = linkOwner(links, link)
		}
		if uint32(r.Priority) != c.ID() && (link == nil || link != own) {
			found = append(found, plan.HostNetwork{Prefix: dst,
				Claim: plan.Claim{What: "the route to " + dst.String(), By: by}})
		}
	}
	return found, nil
}

// linkNamed returns the link with that name, or nil.
func linkNamed(links []netlink.Link, name string) netlink.Link {
	for _, l := range links {
		if l.Attrs().Name == name {
			return l
		}
	}
	return nil
}

// linkOwner names the cluster that a link belongs to, or else the link. Without a link the owner is this machine.
func linkOwner(links []netlink.Link, l netlink.Link) string {
	if l == nil {
		return "this machine"
	}
	if mark := plan.MarkIn(l.Attrs().Name); mark != "" {
		return clusterMarked(links, mark)
	}
	return "the link " + l.Attrs().Name
}

// clusterMarked names the cluster with a mark by its data directory, which its link has as its alias.
func clusterMarked(links []netlink.Link, mark string) string {
	if l := linkNamed(links, mark); l != nil && l.Attrs().Alias != "" {
		return plan.DescribeCluster(l.Attrs().Alias)
	}
	return "the cluster marked " + mark
}
