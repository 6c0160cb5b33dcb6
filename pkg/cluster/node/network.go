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

// configureNetwork sets the node's addresses and routes, and the kernel's settings for a router of pods. In the own
// network of a machine that has joined it makes only the settings without which pods do not work.
func (n *Config) configureNetwork() error {
	settings := map[string]string{
		"net/ipv4/ip_forward": "1",
		// A pod that reaches its neighbour through a Service needs its answer translated back.
		"net/bridge/bridge-nf-call-iptables": "1",
	}
	// The filter would drop packets that arrive by another link than the answer leaves by. On a machine that has
	// joined, the setting is its administrator's.
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
		// A container cannot load the module. Elsewhere the check before the start has loaded it.
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
		// The routes come after this: the kernel accepts no gateway over a link that is down.
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", link.Attrs().Name, err)
		}
	}
	return n.addRoutes()
}

// addRoutes adds a default route of IPv4 to the host. The host forwards no IPv6, so there the node has a route to the
// Services alone, which a packet needs before kube-proxy's rules see it; every other address is refused at once, and
// not after a timeout.
func (n *Config) addRoutes() error {
	for _, gateway := range n.Gateways {
		if gateway.Is4() {
			if err := netlink.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()}); err != nil {
				return fmt.Errorf("add the default route: %w", err)
			}
			continue
		}
		everything := netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		// lo has the index 1 in every network namespace. Any other route has a lower metric, and so wins.
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
