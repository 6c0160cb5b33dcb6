package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/publish"
)

// EnterContainedNode is the first step of a node in a container: where the container's cgroups are seen among the machine's, they become the
// roots of a new cgroup namespace, so that nodes beside each other have groups of the same names. It returns only with an error.
func EnterContainedNode(self, path string) error {
	runtime.LockOSThread() // until exec makes this thread the process
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("make a cgroup namespace (is the container privileged?): %w", err)
	}
	return unix.Exec(self, []string{self, "node-init", path}, os.Environ())
}

// containerDNS is where a container engine answers for the names of a network's containers and asks the machine's own servers for others,
// in every container by itself.
var containerDNS = netip.AddrFrom4([4]byte{127, 0, 0, 11})

// standAlone makes the node do for its pods what the host does in a cluster of processes: they leave the cluster as the node, no
// address of pods or Services leaves it, and they find a DNS server at the node. wait returns when that has ended, after ctx.
func (n *NodeConfig) standAlone(ctx context.Context, log *slog.Logger) (wait func(), err error) {
	for _, pods := range n.Podnets { // a node's own and those of others are more specific
		if err := netlink.RouteReplace(&netlink.Route{Dst: host.IPNet(pods), Type: unix.RTN_UNREACHABLE, Priority: 1 << 20}); err != nil {
			return nil, fmt.Errorf("keep %s in the cluster: %w", pods, err)
		}
	}
	if err := host.NFT(ctx, n.edgeRules()); err != nil {
		return nil, fmt.Errorf("write the node's packet rules: %w", err)
	}
	dns := publish.New(log)
	dns.LeadTo([]netip.Addr{containerDNS})
	const port = 53
	own := n.Addresses[0].Addr()
	return dns.Publish(ctx, []plan.PortMapping{{Address: own, HostPort: port, NodePort: port}, {Address: own, HostPort: port, NodePort: port, UDP: true}})
}

// edgeRules masquerade pods that leave the cluster, and refuse what is for a Service that kube-proxy does not know.
func (n *NodeConfig) edgeRules() string {
	nodes := n.Addresses[0].Masked()
	return fmt.Sprintf(`table ip bonsai-edge {
	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		oifname "eth0" ip saddr %[1]s ip daddr != { %[1]s, %[2]s } masquerade
	}
	chain forward {
		type filter hook forward priority filter; policy accept;
		oifname "eth0" ip daddr %[3]s reject with icmp host-unreachable
	}
	chain output {
		type filter hook output priority filter; policy accept;
		oifname "eth0" ip daddr %[3]s reject with icmp host-unreachable
	}
}
`, n.Podnets[0], nodes, n.ServiceSubnets[0])
}

// EnterRouted gives this container a route to the pods, over all nodes of which each leads on to the others' pods, becomes the user of
// control planes, who may change nothing of that, and then the program argv. It returns only with an error.
func EnterRouted(pods netip.Prefix, nodes []netip.Addr, argv []string) error {
	if len(argv) == 0 || len(nodes) == 0 {
		return errors.New("a program and a node are needed")
	}
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("find eth0: %w", err)
	}
	route := &netlink.Route{Dst: host.IPNet(pods)}
	for _, node := range nodes {
		route.MultiPath = append(route.MultiPath, &netlink.NexthopInfo{LinkIndex: link.Attrs().Index, Gw: node.AsSlice()})
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("add the route to the pods: %w", err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	// The last one takes all capabilities away.
	for _, step := range []func() error{
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setgid(containedUser) },
		func() error { return syscall.Setuid(containedUser) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("become the user %d: %w", containedUser, err)
		}
	}
	return unix.Exec(path, argv, os.Environ())
}
