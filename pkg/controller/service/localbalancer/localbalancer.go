// Package localbalancer gives Services of type LoadBalancer addresses of a range that leads to the nodes, as that of a
// cluster on one machine does: kube-proxy on each node knows what to do with them, and there is nothing else to make.
package localbalancer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller/service"
)

// Balancer gives addresses. It remembers nothing that matters: what is given stands in the Services' status.
type Balancer struct {
	ranges   []netip.Prefix
	services func() []*corev1.Service

	mu sync.Mutex
	// given are the addresses that may not stand in a status yet.
	given map[types.UID][]netip.Addr
}

var _ service.Provider = (*Balancer)(nil)

// New returns a Balancer that gives addresses of ranges, except the first and the last of each, which networks keep
// for themselves. services lists all Services.
func New(ranges []netip.Prefix, services func() []*corev1.Service) *Balancer {
	return &Balancer{ranges: ranges, services: services, given: map[types.UID][]netip.Addr{}}
}

// Ensure implements service.Provider: an address for each of the service's IP families that has a range. A service
// keeps its addresses, unless spec.loadBalancerIP asks for another. The nodes do not matter: the range is routed to all
// of them.
func (b *Balancer) Ensure(_ context.Context, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := b.usedByOthers(s)
	var out []netip.Addr
	for _, family := range s.Spec.IPFamilies {
		a, ok, err := b.pick(s, family, used)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no range of addresses of %v", s.Spec.IPFamilies)
	}
	b.given[s.UID] = out
	status := &corev1.LoadBalancerStatus{}
	for _, a := range out {
		status.Ingress = append(status.Ingress,
			corev1.LoadBalancerIngress{IP: a.String(), IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)})
	}
	return status, nil
}

// Update implements service.Provider.
func (b *Balancer) Update(context.Context, *corev1.Service, []*corev1.Node) error { return nil }

// Release implements service.Provider.
func (b *Balancer) Release(_ context.Context, s *corev1.Service) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.given, s.UID)
	return nil
}

// usedByOthers are the addresses that are not free for s. What was given to services that are gone is forgotten.
func (b *Balancer) usedByOthers(s *corev1.Service) map[netip.Addr]bool {
	used, there := map[netip.Addr]bool{}, map[types.UID]bool{}
	for _, o := range b.services() {
		there[o.UID] = true
		if o.UID == s.UID {
			continue
		}
		for _, a := range addresses(o) {
			used[a] = true
		}
		for _, a := range b.given[o.UID] {
			used[a] = true
		}
	}
	for uid := range b.given {
		if !there[uid] {
			delete(b.given, uid)
		}
	}
	return used
}

// addresses are those that a service's status has.
func addresses(s *corev1.Service) []netip.Addr {
	var out []netip.Addr
	for _, in := range s.Status.LoadBalancer.Ingress {
		if a, err := netip.ParseAddr(in.IP); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// pick finds an address of a family: the one that is asked for, or the one that the service has, or the lowest that is
// free; false: there is no range of that family.
func (b *Balancer) pick(s *corev1.Service, family corev1.IPFamily, used map[netip.Addr]bool) (netip.Addr, bool, error) {
	ranges := slices.DeleteFunc(slices.Clone(b.ranges), func(p netip.Prefix) bool {
		return p.Addr().Is6() != (family == corev1.IPv6Protocol)
	})
	if len(ranges) == 0 {
		return netip.Addr{}, false, nil
	}
	inside := func(a netip.Addr) bool {
		return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(a) && givable(p, a) })
	}
	if asked, err := netip.ParseAddr(s.Spec.LoadBalancerIP); err == nil &&
		asked.Is6() == (family == corev1.IPv6Protocol) {
		switch {
		case !inside(asked):
			return netip.Addr{}, true,
				fmt.Errorf("the address %s that spec.loadBalancerIP asks for is not in %v", asked, ranges)
		case used[asked]:
			return netip.Addr{}, true,
				fmt.Errorf("the address %s that spec.loadBalancerIP asks for is another service's", asked)
		}
		return asked, true, nil
	}
	for _, a := range slices.Concat(addresses(s), b.given[s.UID]) {
		if inside(a) && !used[a] {
			return a, true, nil
		}
	}
	for _, p := range ranges {
		for a := p.Masked().Addr().Next(); p.Contains(a); a = a.Next() {
			if givable(p, a) && !used[a] {
				return a, true, nil
			}
		}
	}
	return netip.Addr{}, true, fmt.Errorf("no address of %v is free", ranges)
}

// givable: an address is neither the first nor the last of its range.
func givable(p netip.Prefix, a netip.Addr) bool {
	return a != p.Masked().Addr() && p.Contains(a.Next())
}
