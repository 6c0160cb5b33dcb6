package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// BalancerSubnet holds the addresses of Services of type LoadBalancer: the last quarter of the node network, where no node is.
func (c Config) BalancerSubnet() netip.Prefix {
	last := c.NodeSubnet.Masked().Addr().As4()
	bits := c.NodeSubnet.Bits() + 2
	for i := c.NodeSubnet.Bits(); i < bits; i++ {
		last[i/8] |= 1 << (7 - i%8)
	}
	return netip.PrefixFrom(netip.AddrFrom4(last), bits)
}

// writeCloudConfig tells the controller manager of that range. Kubernetes' own has no provider for it, and does not read the file.
func (c Config) writeCloudConfig() error {
	return writeFile(c.layout().cloudConfig(), fmt.Appendf(nil, "loadBalancerCIDRs: [%s]\n", c.BalancerSubnet()))
}

// balancerGateways are the nodes' addresses that the host reaches balancers by, in order: nodes that are Ready, and not kept from balancers.
// Addresses outside of the node network are ignored, as with routes to pods.
func (c Config) balancerGateways(nodes []*corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		a, err := netip.ParseAddr(internalIP(n))
		_, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]
		if err == nil && c.NodeSubnet.Contains(a) && a != c.HostIP() && !excluded && ready(n) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// routeToBalancers sets the host's route to the balancers' addresses through gateways, which kube-proxy of any node forwards; without any
// it removes the route. It goes with the link.
func (c Config) routeToBalancers(gateways []netip.Addr) error {
	link, err := netlink.LinkByName(c.mark())
	if err != nil {
		return fmt.Errorf("find %s: %w", c.mark(), err)
	}
	subnet := c.BalancerSubnet()
	route := &netlink.Route{Dst: &net.IPNet{IP: subnet.Addr().AsSlice(), Mask: net.CIDRMask(subnet.Bits(), 32)}}
	if len(gateways) == 0 {
		route.LinkIndex = link.Attrs().Index
		if err := netlink.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		return nil
	}
	for _, g := range gateways {
		route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: g.AsSlice()})
	}
	return netlink.RouteReplace(route)
}
