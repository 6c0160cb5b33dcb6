package containerized

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/publish"
)

// containerDNS is the address of the container engine's DNS server, which every container has for itself. It answers
// for the names of the network's containers, and asks the machine's own servers for others.
var containerDNS = netip.AddrFrom4([4]byte{127, 0, 0, 11})

// StandAlone makes a node in a container do for its pods what the host does in a cluster of processes. The pods leave
// the cluster with the node's address, no packet to the address of a pod or Service leaves it, and the pods find a DNS
// server at the node. wait returns when the DNS server has ended, after ctx.
func StandAlone(ctx context.Context, n *node.Config, log *slog.Logger) (wait func(), err error) {
	for _, pods := range n.Podnets { // the routes to the pods of each node are more specific
		if err := netlink.RouteReplace(
			&netlink.Route{Dst: host.IPNet(pods), Type: unix.RTN_UNREACHABLE, Priority: 1 << 20}); err != nil {
			return nil, fmt.Errorf("keep %s in the cluster: %w", pods, err)
		}
	}
	if err := host.NFT(ctx, edgeRules(n)); err != nil {
		return nil, fmt.Errorf("write the node's packet rules: %w", err)
	}
	// The engine's server answers only inside this container, so the node forwards the questions of its pods.
	dns := publish.New(log)
	dns.LeadTo([]netip.Addr{containerDNS})
	const port = 53
	own := n.Addresses[0].Addr()
	return dns.Publish(ctx, []plan.PortMapping{{Address: own, HostPort: port, NodePort: port},
		{Address: own, HostPort: port, NodePort: port, UDP: true}})
}

// edgeRules masquerade pods that leave the cluster, and reject packets to a Service that kube-proxy does not know.
func edgeRules(n *node.Config) string {
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
