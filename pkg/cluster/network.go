package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Names on the host: the namespace that holds the nodes' bridge, the host's end of the cable to it, and our nft table.
const (
	fabricNamespace = "bonsai"
	hostLink        = "bonsai0"
	hostTable       = "bonsai"
	mtu             = 1500
)

// ip runs iproute2's ip. nft runs nft with a script on standard input.
func ip(ctx context.Context, args ...string) error { return command(ctx, "", "ip", args...) }
func nft(ctx context.Context, script string) error { return command(ctx, script, "nft", "-f", "-") }

func command(ctx context.Context, stdin, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(out.String()))
	}
	return nil
}

// makeNetwork builds the bridge's namespace, the host's cable to it and the host's rules. What is left of an earlier one goes
// first: nothing of value is in it.
func (c Config) makeNetwork(ctx context.Context) error {
	if err := c.removeNetwork(ctx); err != nil {
		return err
	}
	bits := "/" + strconv.Itoa(c.NodeSubnet.Bits())
	for _, args := range [][]string{
		{"netns", "add", fabricNamespace},
		{"-n", fabricNamespace, "link", "set", "lo", "up"},
		{"-n", fabricNamespace, "link", "add", "br0", "type", "bridge"},
		{"-n", fabricNamespace, "link", "set", "br0", "up"},
		{"link", "add", hostLink, "type", "veth", "peer", "name", "host", "netns", fabricNamespace},
		{"-n", fabricNamespace, "link", "set", "host", "master", "br0", "up"},
		{"addr", "add", c.HostIP().String() + bits, "dev", hostLink},
		{"link", "set", hostLink, "up"},
		// The host has no kube-proxy: a service address must not follow its default route.
		{"route", "replace", "unreachable", c.ServiceSubnet.String()},
	} {
		if err := ip(ctx, args...); err != nil {
			return fmt.Errorf("make the node network: %w", err)
		}
	}
	if c.Egress {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
			return fmt.Errorf("let the host forward packets of the nodes: %w", err)
		}
		if err := openForward(ctx); err != nil {
			return err
		}
	}
	if err := nft(ctx, c.hostRules()); err != nil {
		return fmt.Errorf("write the host's packet rules: %w", err)
	}
	return nil
}

// hostRules keep addresses of pods and services from leaving the machine, and masquerade the rest if there is egress.
func (c Config) hostRules() string {
	egress := "drop"
	if c.Egress {
		egress = "accept"
	}
	return fmt.Sprintf(`table ip %[1]s {
	chain forward {
		type filter hook forward priority -10; policy accept;
		iifname %[2]q oifname != %[2]q ip daddr { %[3]s, %[4]s, %[5]s } drop
		iifname %[2]q oifname != %[2]q %[6]s
	}
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr { %[3]s, %[4]s } ip daddr != { %[3]s, %[4]s } oifname != %[2]q masquerade
	}
}
`, hostTable, hostLink, c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, egress)
}

// removeNetwork undoes makeNetwork; routes to pods go with the link.
func (c Config) removeNetwork(ctx context.Context) error {
	errs := []error{closeForward(ctx)}
	if _, err := netlink.LinkByName(hostLink); err == nil {
		errs = append(errs, ip(ctx, "link", "del", hostLink))
	}
	if _, err := os.Stat("/run/netns/" + fabricNamespace); err == nil {
		errs = append(errs, ip(ctx, "netns", "del", fabricNamespace))
	}
	if routed(c.ServiceSubnet) {
		errs = append(errs, ip(ctx, "route", "del", "unreachable", c.ServiceSubnet.String()))
	}
	if err := command(ctx, "", "nft", "list", "table", "ip", hostTable); err == nil {
		errs = append(errs, nft(ctx, "delete table ip "+hostTable+"\n"))
	}
	return errors.Join(errs...)
}

// routed tells whether the host has our unreachable route for subnet.
func routed(subnet netip.Prefix) bool {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Type: unix.RTN_UNREACHABLE}, netlink.RT_FILTER_TYPE)
	if err != nil {
		return false
	}
	for _, r := range routes {
		if r.Dst != nil && r.Dst.String() == subnet.String() {
			return true
		}
	}
	return false
}

// connectNode lays the cable between the bridge and the network namespace of the node's init process.
func (c Config) connectNode(ctx context.Context, name string, pid int) error {
	peer := strconv.Itoa(pid)
	// A node that died a moment ago may not have lost its cable yet.
	if err := ip(ctx, "-n", fabricNamespace, "link", "show", name); err == nil {
		if err := ip(ctx, "-n", fabricNamespace, "link", "del", name); err != nil {
			return err
		}
	}
	if err := ip(ctx, "-n", fabricNamespace, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", peer); err != nil {
		return fmt.Errorf("connect node %s: %w", name, err)
	}
	return ip(ctx, "-n", fabricNamespace, "link", "set", name, "master", "br0", "up")
}

// configureNode runs inside the node: addresses, routes and the settings a router of pods needs.
func configureNode(address netip.Prefix, gateway netip.Addr) error {
	for _, name := range []string{"lo", "eth0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find %s: %w", name, err)
		}
		if name == "eth0" {
			a, err := netlink.ParseAddr(address.String())
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(link, a); err != nil {
				return fmt.Errorf("give eth0 the address %s: %w", address, err)
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", name, err)
		}
	}
	if err := netlink.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()}); err != nil {
		return fmt.Errorf("add the default route: %w", err)
	}
	for path, value := range map[string]string{
		"net/ipv4/ip_forward":                "1",
		"net/ipv4/conf/all/rp_filter":        "0",
		"net/ipv4/conf/default/rp_filter":    "0",
		"net/bridge/bridge-nf-call-iptables": "1", // a pod that reaches its neighbour through a Service needs its answer translated back
	} {
		if err := os.WriteFile("/proc/sys/"+path, []byte(value), 0); err != nil {
			return fmt.Errorf("set %s: %w (is the kernel module br_netfilter loaded?)", path, err)
		}
	}
	return nil
}
