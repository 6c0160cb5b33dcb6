package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// BalancerGateways returns the addresses of the nodes by which the host reaches load balancers, in order: nodes that
// are Ready and not excluded from balancers. It ignores addresses outside the node networks: whoever may write a Node
// must not lead the host elsewhere.
func BalancerGateways(c plan.Config, nodes []*corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded || !client.IsReady(n) {
			continue
		}
		for _, a := range client.InternalIPs(n) {
			if c.Networks().IsNodeAddress(a) {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// RouteThrough sets the host's routes to addresses of balancers or Services through gateways of their families;
// kube-proxy of any node forwards the packets. Without gateways it removes the routes. They go with the link, so Remove
// need not know them.
//
// FollowNodes calls it for the networks of load balancers, FollowLocalBalancers for single addresses in them, whose
// routes are more specific and so win, and the `bonsai dns` command for the Services.
func RouteThrough(c plan.Config, subnets []netip.Prefix, gateways []netip.Addr) error {
	link, err := netlink.LinkByName(c.Mark())
	if err != nil {
		return fmt.Errorf("find %s: %w", c.Mark(), err)
	}
	var errs []error
	for _, subnet := range subnets {
		route := &netlink.Route{Dst: host.IPNet(subnet)}
		for _, g := range gateways {
			if g.Is4() == subnet.Addr().Is4() {
				route.MultiPath = append(route.MultiPath,
					&netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: g.AsSlice()})
			}
		}
		if len(route.MultiPath) > 0 {
			errs = append(errs, netlink.RouteReplace(route))
			continue
		}
		route.LinkIndex = link.Attrs().Index
		// ESRCH is the kernel's answer for a route that does not exist, which is what is wanted.
		if err := netlink.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
