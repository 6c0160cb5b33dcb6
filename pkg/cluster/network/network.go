package network

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

// Make builds the bridge's namespace, the host's link to it, and the host's routes and rules. All of it carries the
// cluster's mark. Nothing with that mark may exist before (Remove), and a failure may leave a part of it. On a machine
// that has joined there is no bridge: Make only leads to the cluster.
//
// The supervisor calls it once in its life, before any process of the cluster runs, and removes everything at its end,
// also after a failure halfway (supervisor.Run).
func Make(ctx context.Context, c plan.Config) error {
	if c.Joined != nil {
		return reachCluster(ctx, c)
	}
	mark := c.Mark()
	// The alias follows at once on the link: by it other starts and `bonsai list` find the data directory of a cluster,
	// wherever that is (machine.Home.Clusters).
	for _, args := range [][]string{
		{"netns", "add", mark},
		{"-n", mark, "link", "set", "lo", "up"},
		{"-n", mark, "link", "add", "br0", "type", "bridge"},
		{"-n", mark, "link", "set", "br0", "up"},
		{"link", "add", mark, "type", "veth", "peer", "name", "host", "netns", mark},
		{"link", "set", mark, "alias", ownerAlias(c.DataDir)},
		{"-n", mark, "link", "set", "host", "master", "br0", "up"},
	} {
		if err := host.IP(ctx, args...); err != nil {
			return fmt.Errorf("make the node network: %w", err)
		}
	}
	for _, subnet := range c.Networks().Nodes() {
		args := []string{"addr", "add", netip.PrefixFrom(plan.Nth(subnet, 1), subnet.Bits()).String(), "dev", mark}
		if subnet.Addr().Is6() {
			args = append(args, "nodad") // nobody else can have it, and it is needed at once
		}
		if err := host.IP(ctx, args...); err != nil {
			return fmt.Errorf("give this machine an address of %s: %w", subnet, err)
		}
	}
	if err := host.IP(ctx, "link", "set", mark, "up"); err != nil {
		return fmt.Errorf("make the node network: %w", err)
	}
	if c.IsHighlyAvailable() {
		if err := host.IP(ctx, "netns", "attach", c.HostNamespace(), strconv.Itoa(unix.Gettid())); err != nil {
			return fmt.Errorf("name the host's network: %w", err)
		}
		for _, m := range c.Members() {
			if err := connectMember(ctx, c, m); err != nil {
				return err
			}
		}
	}
	// A packet to an unused address of the cluster must not follow the host's default route. That concerns all
	// Services, since the host has no kube-proxy, and the pods of a node until the route to them is set. The high
	// metric lets every other route win.
	for _, subnet := range c.Networks().All() {
		if err := host.IP(ctx, "route", "add", "unreachable", subnet.String(), "metric",
			strconv.FormatUint(uint64(c.ID()), 10)); err != nil {
			return fmt.Errorf("keep %s on this machine: %w", subnet, err)
		}
	}
	if forwards(c) {
		f, err := host.IPv4Forwarding()
		if err == nil {
			err = f.Begin(mark, host.ForwardChain(ctx))
		}
		if err != nil {
			return fmt.Errorf("let the host forward packets of the nodes: %w", err)
		}
		if err := host.OpenForward(ctx, mark, c.IsJoinable()); err != nil {
			return err
		}
	}
	if _, err := host.OpenInput(ctx, mark, services(c)); err != nil {
		return err
	}
	if err := host.NFT(ctx, packetRules(c)); err != nil {
		return fmt.Errorf("write the host's packet rules: %w", err)
	}
	return nil
}

// packetRules returns the tables that Make loads on this machine.
func packetRules(c plan.Config) string {
	if c.Joined != nil {
		return joinedRules(c)
	}
	return HostRules(c)
}

// forwards reports whether the host forwards packets of the nodes: out of the cluster, or of several API servers to
// pods.
func forwards(c plan.Config) bool { return c.Egress || c.IsHighlyAvailable() }

// services returns what nodes and pods must reach of the host: the API server, the relay of DNS, and the registry
// mirrors, as far as they are on the host.
func services(c plan.Config) []host.Service {
	const dns = 53
	var all []host.Service
	for _, ip := range c.Networks().HostIPs() {
		all = append(all, host.Service{Protocol: "tcp", At: netip.AddrPortFrom(ip, uint16(c.Ports.API))})
		if c.Egress { // without it nodes have no resolver
			all = append(all, host.Service{Protocol: "udp", At: netip.AddrPortFrom(ip, dns)},
				host.Service{Protocol: "tcp", At: netip.AddrPortFrom(ip, dns)})
		}
	}
	for _, six := range []bool{false, true} {
		for _, at := range plan.MirrorAddresses(c.Mirrors, six) {
			all = append(all, host.Service{Protocol: "tcp", At: at})
		}
	}
	return all
}

// Remove undoes Make, whole or in part, by the cluster's mark alone. It goes on after an error, and returns all of
// them. Routes to pods go with the link.
//
// The supervisor calls it at its end, a start before it begins anything (start.CleanUp), and `bonsai down`: a
// supervisor that was killed has removed nothing.
func Remove(ctx context.Context, c plan.Config) error {
	mark := c.Mark()
	errs := []error{host.CloseForward(ctx, mark), host.CloseInput(ctx, mark), removeRoutes(c)}
	if c.Joined != nil {
		errs = append(errs, leaveCluster(ctx, c))
	}
	if _, err := netlink.LinkByName(mark); err == nil {
		errs = append(errs, host.IP(ctx, "link", "del", mark))
	}
	namespaces, err := filepath.Glob(plan.NetnsDir + mark + "*") // no other cluster's: a mark has a fixed length
	errs = append(errs, err)
	for _, path := range namespaces {
		errs = append(errs, host.IP(ctx, "netns", "del", filepath.Base(path)))
	}
	for _, family := range [2]string{"ip", "ip6"} {
		switch err := host.Run(ctx, "", "nft", "list", "table", family, mark); {
		case err == nil:
			errs = append(errs, host.NFT(ctx, "delete table "+family+" "+mark+"\n"))
		case errors.Is(err, exec.ErrNotFound): // without nft the table may exist
			errs = append(errs, err)
		}
	}
	f, err := host.IPv4Forwarding()
	if err == nil {
		err = f.End(mark, host.ForwardChain(ctx))
	}
	return errors.Join(append(errs, err)...)
}

// removeRoutes removes the routes whose metric is the cluster's ID, whatever their subnet: the unreachable ones, and
// those to other machines. Others go with the link.
func removeRoutes(c plan.Config) error {
	routes, err := netdump.Routes(netlink.FAMILY_ALL, &netlink.Route{Table: unix.RT_TABLE_MAIN},
		netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("list the routes: %w", err)
	}
	var errs []error
	for _, r := range routes {
		if uint32(r.Priority) == c.ID() {
			errs = append(errs, netlink.RouteDel(&r))
		}
	}
	return errors.Join(errs...)
}

// Stands reports whether the host's end of the node network is there. A running cluster whose link somebody deleted
// cannot get it back: its supervisor makes the network once, so Up starts such a cluster again.
func Stands(c plan.Config) bool {
	_, err := netlink.LinkByName(c.Mark())
	return err == nil
}

// ConnectNode makes a pair of links between the bridge and the network namespace of the process pid, a node's init. The
// init waits meanwhile (supervise.Process.Started), and then gives its end, eth0, addresses and routes itself.
func ConnectNode(ctx context.Context, c plan.Config, name string, pid int) error {
	fabric, peer := c.Mark(), strconv.Itoa(pid)
	// The kernel may not have removed the link of a node that died a moment ago.
	if err := host.IP(ctx, "-n", fabric, "link", "show", name); err == nil {
		if err := host.IP(ctx, "-n", fabric, "link", "del", name); err != nil {
			return err
		}
	}
	if err := host.IP(ctx, "-n", fabric, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns",
		peer); err != nil {
		return fmt.Errorf("connect node %s: %w", name, err)
	}
	return host.IP(ctx, "-n", fabric, "link", "set", name, "master", "br0", "up")
}

// connectMember makes the network namespace of one of several control planes, and links it to the bridge. Its default
// route leads to the host, which forwards to the pods.
func connectMember(ctx context.Context, c plan.Config, m plan.Member) error {
	fabric, ns, name := c.Mark(), m.Namespace(), m.Name()
	for _, args := range [][]string{
		{"netns", "add", ns},
		{"-n", ns, "link", "set", "lo", "up"},
		{"-n", fabric, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", ns},
		{"-n", fabric, "link", "set", name, "master", "br0", "up"},
		{"-n", ns, "link", "set", "eth0", "up"},
	} {
		if err := host.IP(ctx, args...); err != nil {
			return fmt.Errorf("connect control plane %s: %w", name, err)
		}
	}
	for i, subnet := range c.Networks().Nodes() {
		args := []string{"-n", ns, "addr", "add", netip.PrefixFrom(m.Addresses[i], subnet.Bits()).String(), "dev",
			"eth0"}
		if subnet.Addr().Is6() {
			args = append(args, "nodad")
		}
		if err := host.IP(ctx, args...); err != nil {
			return fmt.Errorf("give control plane %s an address of %s: %w", name, subnet, err)
		}
	}
	if err := host.IP(ctx, "-n", ns, "route", "add", "default", "via", c.Networks().HostIP().String()); err != nil {
		return fmt.Errorf("connect control plane %s: %w", name, err)
	}
	return nil
}
