package network

import (
	"context"
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
	"bonsai/pkg/netdump"
)

// reachCluster makes a route to the node network of the cluster, over the machine with its control plane, and lets pods
// reach everything else with this machine's address.
//
// Make calls it instead of everything else. A failure leaves a part of it, which Remove takes away by the metric, the
// table's name and leaveCluster.
func reachCluster(ctx context.Context, c plan.Config) error {
	// The kernel refuses a gateway that is not on one of the machine's own networks. The metric marks the route as the
	// cluster's, and removeRoutes finds it by that.
	route := &netlink.Route{Dst: host.IPNet(c.NodeSubnet), Gw: c.Joined.Through().AsSlice(), Priority: int(c.ID())}
	if err := netlink.RouteAdd(route); errors.Is(err, unix.ENETUNREACH) {
		return fmt.Errorf("%s is behind a router: nodes join from a network that they share with it",
			c.Joined.Through())
	} else if err != nil {
		return fmt.Errorf("lead to the nodes' network %s: %w", c.NodeSubnet, err)
	}
	if err := host.OpenForward(ctx, plan.PodBridge, true); err != nil {
		return err
	}
	return host.NFT(ctx, packetRules(c))
}

// joinedRules returns the packet rules of a machine that has joined.
func joinedRules(c plan.Config) string {
	return fmt.Sprintf(`table ip %s {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr %s ip daddr != { %s, %s } oifname != %q masquerade
	}
}
`, c.Mark(), c.PodSubnet, c.NodeSubnet, c.PodSubnet, plan.PodBridge)
}

// leaveCluster removes from the machine's own network what the node's kube-proxy, bonsai-network and CNI plug-ins made
// there, and what reachCluster made without the cluster's mark. It deletes the bridge only if that has an address of
// the cluster's pods: another program may use the same name.
func leaveCluster(ctx context.Context, c plan.Config) error {
	errs := []error{host.CloseForward(ctx, plan.PodBridge)}
	// With --cleanup an agent removes what it made and ends.
	for _, agent := range []string{"kube-proxy", "bonsai-network"} {
		if host.IsExecutable(c.Bin(agent)) {
			errs = append(errs, host.Run(ctx, "", c.Bin(agent), "--cleanup"))
		}
	}
	if bridge, err := netlink.LinkByName(plan.PodBridge); err == nil {
		addresses, err := netdump.Addresses(bridge, netlink.FAMILY_V4)
		errs = append(errs, err)
		for _, a := range addresses {
			if ip, ok := netip.AddrFromSlice(a.IP); ok && c.PodSubnet.Contains(ip.Unmap()) {
				errs = append(errs, netlink.LinkDel(bridge))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// joinedMachines returns the addresses of the nodes on other machines, in order. Their order lets FollowNodes compare
// them with the last ones.
func joinedMachines(c plan.Config, nodes []*corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		for _, a := range client.InternalIPs(n) {
			if a.Is4() && !c.Networks().IsOwn(a) {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}
