package node

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// configureNetwork runs inside the node: addresses, routes and the settings a router of pods needs. In a machine's
// own network it makes
// the settings that there is no doing without.
func (n *Config) configureNetwork() error {
	settings := map[string]string{
		"net/ipv4/ip_forward": "1",
		// A pod that reaches its neighbour through a Service needs its answer translated back.
		"net/bridge/bridge-nf-call-iptables": "1",
	}
	if !n.Joined {
		settings["net/ipv4/conf/all/rp_filter"], settings["net/ipv4/conf/default/rp_filter"] = "0", "0"
	}
	if _, ok := plan.FirstIPv6(n.Podnets); ok {
		settings["net/ipv6/conf/all/disable_ipv6"] = "0"
		settings["net/ipv6/conf/all/forwarding"] = "1"
		settings["net/bridge/bridge-nf-call-ip6tables"] = "1"
	}
	for path, value := range settings {
		err := os.WriteFile("/proc/sys/"+path, []byte(value), 0)
		// A container cannot load it, and its machine has not.
		if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(path, "net/bridge/") {
			return fmt.Errorf("set %s: kernel module br_netfilter is not loaded (run on the machine: modprobe br_netfilter)", path)
		}
		if err != nil {
			return fmt.Errorf("set %s: %w", path, err)
		}
	}
	if n.Joined {
		return nil
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	eth0, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find eth0: %w", err)
	}
	for _, address := range n.Addresses {
		a, err := netlink.ParseAddr(address.String())
		if err != nil {
			return err
		}
		if address.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD // nobody else can have it, and it is needed at once
		}
		if err := netlink.AddrReplace(eth0, a); err != nil { // a container has it
			return fmt.Errorf("give eth0 the address %s: %w", address, err)
		}
	}
	for _, link := range []netlink.Link{lo, eth0} {
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", link.Attrs().Name, err)
		}
	}
	return n.addRoutes()
}

// addRoutes leads all of IPv4 to the host. It forwards nothing of IPv6: there the Services' addresses have a route,
// which packets need
// before kube-proxy's rules see them, and what is not known is refused.
func (n *Config) addRoutes() error {
	for _, gateway := range n.Gateways {
		if gateway.Is4() {
			if err := netlink.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()}); err != nil {
				return fmt.Errorf("add the default route: %w", err)
			}
			continue
		}
		everything := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		if err := netlink.RouteAdd(
			&netlink.Route{Dst: host.IPNet(everything), Type: unix.RTN_UNREACHABLE, LinkIndex: 1,
				Priority: 1 << 20}); err != nil {
			return fmt.Errorf("refuse what is not known of IPv6: %w", err)
		}
		if services, ok := plan.FirstIPv6(n.ServiceSubnets); ok {
			if err := netlink.RouteAdd(&netlink.Route{Dst: host.IPNet(services), Gw: gateway.AsSlice()}); err != nil {
				return fmt.Errorf("add the route to the Services of IPv6: %w", err)
			}
		}
	}
	return nil
}
