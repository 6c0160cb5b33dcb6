package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// writeCloudConfig tells the controller manager of the balancers' ranges. Kubernetes' own has no provider for it, and does not read the file.
func writeCloudConfig(c plan.Config) error {
	return host.WriteFile(c.Layout().CloudConfig(), fmt.Appendf(nil, "loadBalancerCIDRs: [%s]\n", quotedList(c.Networks().Balancers())))
}

// balancerGateways are the nodes' addresses that the host reaches balancers by, in order: nodes that are Ready, and not kept from balancers.
// Addresses outside of the node networks are ignored, as with routes to pods.
func balancerGateways(c plan.Config, nodes []*corev1.Node) []netip.Addr {
	var out []netip.Addr
	for _, n := range nodes {
		if _, excluded := n.Labels[corev1.LabelNodeExcludeBalancers]; excluded || !ready(n) {
			continue
		}
		for _, a := range internalIPs(n) {
			if c.Networks().IsNodeAddress(a) {
				out = append(out, a)
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// routeThrough sets the host's routes to addresses of balancers or Services through gateways of their families, which kube-proxy of any
// node forwards; without any it removes the routes. They go with the link.
func routeThrough(c plan.Config, subnets []netip.Prefix, gateways []netip.Addr) error {
	link, err := netlink.LinkByName(c.Mark())
	if err != nil {
		return fmt.Errorf("find %s: %w", c.Mark(), err)
	}
	var errs []error
	for _, subnet := range subnets {
		route := &netlink.Route{Dst: host.IPNet(subnet)}
		for _, g := range gateways {
			if g.Is4() == subnet.Addr().Is4() {
				route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: g.AsSlice()})
			}
		}
		if len(route.MultiPath) > 0 {
			errs = append(errs, netlink.RouteReplace(route))
			continue
		}
		route.LinkIndex = link.Attrs().Index
		if err := netlink.RouteDel(route); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// quotedList is a list of YAML.
func quotedList(networks []netip.Prefix) string {
	var texts []string
	for _, p := range networks {
		texts = append(texts, strconv.Quote(p.String()))
	}
	return strings.Join(texts, ", ")
}
