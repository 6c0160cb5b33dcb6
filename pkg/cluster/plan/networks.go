package plan

import (
	"fmt"
	"net/netip"
	"slices"
)

// Networks are the networks of a cluster's nodes, pods and Services, and the addresses in them that are fixed. Where a
// cluster has both families of addresses, IPv4 is always the first.
type Networks struct {
	Family IPFamily
	// Node has the host at .1 and node i at .10+i. Pod is cut into a /24 for each node. These three are IPv4; the
	// networks of IPv6 follow from them.
	Node, Pod, Service netip.Prefix
}

// Networks returns the networks of the cluster.
func (c Config) Networks() Networks {
	return Networks{Family: c.IPFamily, Node: c.NodeSubnet, Pod: c.PodSubnet, Service: c.ServiceSubnet}
}

// A network of IPv6 contains the four bytes of the IPv4 network that it follows from, so two clusters share no network
// of IPv6 either. These are the two bytes that distinguish nodes, pods and Services.
var (
	nodes6    = [2]byte{0xb0, 0x5a}
	pods6     = [2]byte{0xb0, 0x5b}
	services6 = [2]byte{0xb0, 0x5c}
)

const (
	// podMask6 is the size of a node's network of IPv6 pods. kube-controller-manager cuts at most 16 bits from the
	// pods' /64.
	podMask6 = 80
	// services6Bits is the size of the largest network of IPv6 Services that kube-apiserver accepts.
	services6Bits = 108
	// balancerBits is the size of the network of IPv6 load balancers.
	balancerBits = 112
)

// Nodes returns the networks of nodes, one of each family.
func (n Networks) Nodes() []netip.Prefix { return n.families(n.Node, nodes6, 64) }

// Pods returns the networks of pods, one of each family. Each is cut into one network per node.
func (n Networks) Pods() []netip.Prefix { return n.families(n.Pod, pods6, 64) }

// Services returns the networks of Services, one of each family: the API server's --service-cluster-ip-range.
func (n Networks) Services() []netip.Prefix { return n.families(n.Service, services6, services6Bits) }

// All returns all networks of the cluster, of each family.
func (n Networks) All() []netip.Prefix {
	return slices.Concat(n.Nodes(), n.Pods(), n.Services())
}

// families returns a network of IPv4, the one of IPv6 that follows from it, or both.
func (n Networks) families(four netip.Prefix, kind [2]byte, bits int) []netip.Prefix {
	switch n.Family {
	case IPv6:
		return []netip.Prefix{beside(four, kind, bits)}
	case Dual:
		return []netip.Prefix{four, beside(four, kind, bits)}
	}
	return []netip.Prefix{four}
}

// beside returns the network of IPv6 that follows from one of IPv4: fd00:KIND:V4:V4::/bits.
func beside(four netip.Prefix, kind [2]byte, bits int) netip.Prefix {
	if !four.IsValid() {
		return netip.Prefix{}
	}
	a := four.Masked().Addr().As4()
	raw := [16]byte{0: 0xfd, 2: kind[0], 3: kind[1], 4: a[0], 5: a[1], 6: a[2], 7: a[3]}
	return netip.PrefixFrom(netip.AddrFrom16(raw), bits)
}

// HostIPs returns the host's addresses on the node networks. At the first one listens the API server or, if there are
// several, the balancer before them.
func (n Networks) HostIPs() []netip.Addr { return nthOfEach(n.Nodes(), 1) }

// HostIP returns the first of HostIPs.
func (n Networks) HostIP() netip.Addr { return n.HostIPs()[0] }

// ServiceIP returns the address of the Service kubernetes.
func (n Networks) ServiceIP() netip.Addr { return Nth(n.Services()[0], 1) }

// DNSIP returns the address by which pods ask the cluster's DNS.
func (n Networks) DNSIP() netip.Addr { return Nth(n.Services()[0], 10) }

// RegistryIP returns the address of the registry's Service.
func (n Networks) RegistryIP() netip.Addr { return Nth(n.Services()[0], 11) }

// RegistryAddress is where nodes and pods reach the registry.
func (n Networks) RegistryAddress() string {
	return netip.AddrPortFrom(n.RegistryIP(), registryPort).String()
}

// Loopback is where this machine's own clients reach the API server: a loopback address of the family at which it
// listens.
func (n Networks) Loopback() netip.Addr {
	if n.Family == IPv6 {
		return netip.IPv6Loopback()
	}
	return netip.MustParseAddr(Loopback)
}

// Balancers returns the networks of the addresses of Services of type LoadBalancer: the parts of the node networks
// where no node is.
func (n Networks) Balancers() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range n.Nodes() {
		out = append(out, lastPart(p))
	}
	return out
}

// lastPart returns the last quarter of a network of IPv4, or the last 16 bits of one of IPv6.
func lastPart(p netip.Prefix) netip.Prefix {
	last, bits := p.Masked().Addr().AsSlice(), p.Bits()+2
	if p.Addr().Is6() {
		bits = balancerBits
	}
	for i := p.Bits(); i < bits; i++ {
		last[i/8] |= 1 << (7 - i%8)
	}
	a, _ := netip.AddrFromSlice(last)
	return netip.PrefixFrom(a, bits)
}

// MaskFlag returns the controller manager's flag for the size of a node's network of IPv6 pods, "" without IPv6. The
// flag has another name in a cluster of both families.
func (n Networks) MaskFlag() string {
	switch n.Family {
	case IPv6:
		return fmt.Sprintf("--node-cidr-mask-size=%d", podMask6)
	case Dual:
		return fmt.Sprintf("--node-cidr-mask-size-ipv6=%d", podMask6)
	}
	return ""
}

// IsNodeAddress reports whether a node may have the address.
func (n Networks) IsNodeAddress(a netip.Addr) bool {
	return slices.ContainsFunc(n.Nodes(), func(p netip.Prefix) bool {
		return p.Contains(a)
	}) && !slices.Contains(n.HostIPs(), a)
}

// IsOwn reports whether an address is in one of the cluster's networks.
func (n Networks) IsOwn(a netip.Addr) bool {
	return slices.ContainsFunc(n.All(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// Within reports whether p is a part of one of the cluster's networks. A wider route, such as a VPN's 10.0.0.0/8, does
// no harm: the cluster's own routes are more specific.
func (n Networks) Within(p netip.Prefix) bool {
	return slices.ContainsFunc(n.All(), func(own netip.Prefix) bool {
		return own.IsValid() && own.Contains(p.Addr()) && p.Bits() >= own.Bits()
	})
}

// subnet is one of the networks of IPv4, with the prefix lengths that it may have.
type subnet struct {
	name              string
	prefix            netip.Prefix
	widest, narrowest int
}

// list returns the networks of IPv4 with their limits: nodes with room for the host and nine nodes, pods with a /24 for
// each node, and Services as kube-apiserver accepts them, with room for the address of DNS.
func (n Networks) list() []subnet {
	return []subnet{
		{"nodeSubnet", n.Node, 8, 27},
		{"podSubnet", n.Pod, 8, 20},
		{"serviceSubnet", n.Service, 12, 28},
	}
}

// Check returns everything that is wrong with the networks that are set.
func (n Networks) Check() []error {
	var errs []error
	subnets := n.list()
	for i, s := range subnets {
		if !s.prefix.IsValid() {
			continue
		}
		bits := s.prefix.Bits()
		if !s.prefix.Addr().Is4() || s.prefix != s.prefix.Masked() || bits < s.widest || bits > s.narrowest {
			errs = append(errs, fmt.Errorf("%s: must be an IPv4 network from /%d to /%d, not %s", s.name, s.widest,
				s.narrowest, s.prefix))
		}
		for _, other := range subnets[:i] {
			if other.prefix.IsValid() && other.prefix.Overlaps(s.prefix) {
				errs = append(errs, fmt.Errorf("%s: %s overlaps %s", s.name, s.prefix, other.name))
			}
		}
	}
	return errs
}

// Nth returns the address n places after the beginning of a network.
func Nth(p netip.Prefix, n int) netip.Addr {
	a := p.Masked().Addr()
	for range n {
		a = a.Next()
	}
	return a
}

// nthOfEach returns the nth address of each of the networks.
func nthOfEach(networks []netip.Prefix, n int) []netip.Addr {
	var out []netip.Addr
	for _, p := range networks {
		out = append(out, Nth(p, n))
	}
	return out
}

// FirstIPv6 returns the first network of IPv6 in a list.
func FirstIPv6(networks []netip.Prefix) (netip.Prefix, bool) {
	i := slices.IndexFunc(networks, func(p netip.Prefix) bool { return p.Addr().Is6() })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return networks[i], true
}
