package plan

import (
	"net/netip"
)

// Loopback is where a control plane listens on its host, except for the API server, whose port the host's packet rules
// forward from there.
const Loopback = "127.0.0.1"

// onLoopback lists the ports that must be free on loopback, the API server's first.
func (p Ports) onLoopback() []int {
	return []int{p.API, p.EtcdClient, p.EtcdPeer, p.ControllerManager, p.Scheduler}
}

// Listening lists where on the host the cluster listens for TCP, as far as that is decided: the control plane, also for
// other machines; on a machine that has joined, the node and the balancer; then the published ports, which come last.
func (c Config) Listening() []netip.AddrPort {
	var all []netip.AddrPort
	if c.Joined != nil {
		for _, port := range nodePorts {
			all = append(all, netip.AddrPortFrom(netip.IPv4Unspecified(), port))
		}
	}
	for i, port := range c.Ports.onLoopback() {
		at := netip.MustParseAddr(Loopback)
		if i == 0 {
			at = c.Networks().Loopback()
		}
		if port != 0 {
			all = append(all, netip.AddrPortFrom(at, uint16(port)))
		}
	}
	if c.IsJoinable() && c.Ports.API != 0 {
		all = append(all, c.Advertised().Listens())
	}
	for _, door := range c.Etcd().Doors {
		all = append(all, door.Listens())
	}
	return append(all, c.published(false)...)
}

// published lists where the published ports of TCP or of UDP are.
func (c Config) published(udp bool) []netip.AddrPort {
	var all []netip.AddrPort
	for _, m := range c.Mappings() {
		if m.UDP == udp {
			all = append(all, m.Listens())
		}
	}
	return all
}

// Ports are the TCP ports of a control plane. The API server's is on the host's address of the node network and, for
// the user, on loopback; the others are on loopback alone.
type Ports struct {
	API, EtcdClient, EtcdPeer, ControllerManager, Scheduler int
}
