package cluster

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// IPFamily says which families of addresses nodes, pods and Services have.
type IPFamily string

// The families. In a cluster of Dual the first address of everything is IPv4's.
const (
	IPv4 IPFamily = "" // so that the zero value is the default
	IPv6 IPFamily = "ipv6"
	Dual IPFamily = "dual"
)

// ParseIPFamily reads ipv4, ipv6 or dual, in any case.
func ParseIPFamily(text string) (IPFamily, error) {
	switch f := IPFamily(strings.ToLower(text)); f {
	case "ipv4":
		return IPv4, nil
	case IPv6, Dual:
		return f, nil
	}
	return IPv4, fmt.Errorf("must be ipv4, ipv6 or dual, not %q", text)
}

// The networks of IPv6 follow from those of IPv4, four of whose bytes stand in them: so two clusters have none in common either. A node
// gets a /80 of the pods' /64: kube-controller-manager cuts at most 16 bits. 108 bits are the most that kube-apiserver takes of services.
var (
	nodes6    = [2]byte{0xb0, 0x5a}
	pods6     = [2]byte{0xb0, 0x5b}
	services6 = [2]byte{0xb0, 0x5c}
)

const (
	podMask6     = 80
	balancerBits = 112
)

// beside is the network of IPv6 that follows from one of IPv4, of a kind that the second and third byte tell: fd00:KIND:V4:V4::/bits.
func beside(four netip.Prefix, kind [2]byte, bits int) netip.Prefix {
	if !four.IsValid() {
		return netip.Prefix{}
	}
	a := four.Masked().Addr().As4()
	raw := [16]byte{0: 0xfd, 2: kind[0], 3: kind[1], 4: a[0], 5: a[1], 6: a[2], 7: a[3]}
	return netip.PrefixFrom(netip.AddrFrom16(raw), bits)
}

// NodeSubnets, PodSubnets and ServiceSubnets are the networks that the cluster has, one of each family, the first one's first.
func (c Config) NodeSubnets() []netip.Prefix { return c.of(c.NodeSubnet, nodes6, 64) }

// PodSubnets are cut into one network for each node.
func (c Config) PodSubnets() []netip.Prefix { return c.of(c.PodSubnet, pods6, 64) }

// ServiceSubnets are --service-cluster-ip-range.
func (c Config) ServiceSubnets() []netip.Prefix { return c.of(c.ServiceSubnet, services6, 108) }

// of is a network of IPv4, the one beside it, or both.
func (c Config) of(four netip.Prefix, kind [2]byte, bits int) []netip.Prefix {
	switch c.IPFamily {
	case IPv6:
		return []netip.Prefix{beside(four, kind, bits)}
	case Dual:
		return []netip.Prefix{four, beside(four, kind, bits)}
	}
	return []netip.Prefix{four}
}

// maskFlag says how large a node's network of IPv6 pods is; in a cluster of both families it has a flag of its own.
func (c Config) maskFlag() string {
	switch c.IPFamily {
	case IPv6:
		return fmt.Sprintf("--node-cidr-mask-size=%d", podMask6)
	case Dual:
		return fmt.Sprintf("--node-cidr-mask-size-ipv6=%d", podMask6)
	}
	return ""
}

// balancerSubnets hold the addresses of Services of type LoadBalancer, in the node networks, where no node is.
func (c Config) balancerSubnets() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range c.NodeSubnets() {
		out = append(out, lastPart(p))
	}
	return out
}

// lastPart is the last quarter of a network of IPv4, and the last 16 bits' of one of IPv6.
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

// addresses are the nth of each of the networks.
func addresses(networks []netip.Prefix, n int) []netip.Addr {
	var out []netip.Addr
	for _, p := range networks {
		out = append(out, nth(p, n))
	}
	return out
}

// six is the first of the networks that is one of IPv6.
func six(networks []netip.Prefix) (netip.Prefix, bool) {
	i := slices.IndexFunc(networks, func(p netip.Prefix) bool { return p.Addr().Is6() })
	if i < 0 {
		return netip.Prefix{}, false
	}
	return networks[i], true
}

// joined is a list as flags take it.
func joined[T fmt.Stringer](list []T) string {
	texts := make([]string, len(list))
	for i, e := range list {
		texts[i] = e.String()
	}
	return strings.Join(texts, ",")
}
