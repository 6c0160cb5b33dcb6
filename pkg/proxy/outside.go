package proxy

import (
	"net/netip"
	"slices"
)

// outside decides which external and load balancer addresses of services are accepted. A user who may create a Service
// may write any address there, and would get the traffic to it on every node (CVE-2020-8554). So addresses that belong
// to the cluster, or that nodes need to be part of it, are never accepted: the ranges of cluster IPs, every cluster IP
// even if the ranges are unknown, the pods' ranges, the addresses of API servers, of nodes and of the routers next to
// this one, and addresses that mean the node itself or its link.
type outside struct {
	// ranges are those of cluster IPs, pods the pods'.
	ranges, pods []netip.Prefix
	// owners counts the services, nodes and others that have an address; wanted has the services that name it as an
	// outside address.
	owners map[netip.Addr]int
	wanted map[netip.Addr]map[Name]struct{}
}

func newOutside() *outside {
	return &outside{owners: map[netip.Addr]int{}, wanted: map[netip.Addr]map[Name]struct{}{}}
}

// own notes addresses of an owner and returns the services whose addresses are decided differently now.
func (o *outside) own(list []netip.Addr) (concerned []Name) {
	for _, a := range list {
		if o.owners[a]++; o.owners[a] == 1 {
			concerned = o.appendWanting(concerned, a)
		}
	}
	return concerned
}

// disown takes back what own noted, and returns the services concerned.
func (o *outside) disown(list []netip.Addr) (concerned []Name) {
	for _, a := range list {
		if o.owners[a]--; o.owners[a] == 0 {
			delete(o.owners, a)
			concerned = o.appendWanting(concerned, a)
		}
	}
	return concerned
}

// setRanges notes the ranges of cluster IPs and returns the services whose addresses may be decided differently now.
func (o *outside) setRanges(ranges []netip.Prefix) (concerned []Name) {
	was := o.ranges
	o.ranges = ranges
	for a := range o.wanted {
		if contained(was, a) != contained(ranges, a) {
			concerned = o.appendWanting(concerned, a)
		}
	}
	return concerned
}

func contained(ranges []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// add notes the addresses of a service and returns the services whose addresses are decided differently now.
func (o *outside) add(svc *serviceFacts) (concerned []Name) {
	for _, list := range [][]netip.Addr{svc.ExternalIPs, svc.LoadBalancerIPs} {
		for _, a := range list {
			if o.wanted[a] == nil {
				o.wanted[a] = map[Name]struct{}{}
			}
			o.wanted[a][svc.Name] = struct{}{}
		}
	}
	return o.own(svc.ClusterIPs)
}

// remove takes back what add noted, and returns the services concerned.
func (o *outside) remove(svc *serviceFacts) (concerned []Name) {
	for _, list := range [][]netip.Addr{svc.ExternalIPs, svc.LoadBalancerIPs} {
		for _, a := range list {
			if delete(o.wanted[a], svc.Name); len(o.wanted[a]) == 0 {
				delete(o.wanted, a)
			}
		}
	}
	return o.disown(svc.ClusterIPs)
}

func (o *outside) appendWanting(to []Name, a netip.Addr) []Name {
	for name := range o.wanted[a] {
		to = append(to, name)
	}
	return to
}

// accepted are those of list that a service may be reached at.
func (o *outside) accepted(list []netip.Addr) []netip.Addr {
	var out []netip.Addr
	for _, a := range list {
		inside := o.owners[a] > 0 || contained(o.ranges, a) || contained(o.pods, a)
		if !inside && !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsMulticast() {
			out = append(out, a)
		}
	}
	return out
}
