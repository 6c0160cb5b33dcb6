package ipvs

import "net/netip"

// Link is the network interface that has the addresses of Services; it is upstream's name. Nothing else uses the
// interface, so every address on it is the proxy's.
const Link = "kube-ipvs0"

// Key identifies a virtual server: an address and port, and tcp, udp or sctp.
type Key struct {
	At       netip.AddrPort
	Protocol string
}

// Server is how a virtual server chooses a real one.
type Server struct {
	Scheduler string
	// AffinitySeconds is how long a client stays with its real server; 0 is no affinity.
	AffinitySeconds int32
	// HashPorts makes the scheduler mh look at the client's port, too.
	HashPorts bool
}

// Real is a real server behind a virtual one, as the kernel has it.
type Real struct {
	Weight uint32
	// Connections counts those that are open, and those that the kernel still remembers.
	Connections uint32
}

// Kernel is the virtual servers of one IP family, and the addresses on Link. What is made must not exist, what is
// changed or removed must. A virtual server goes with its real ones. A real server of weight 0 gets no new connections,
// and keeps those that it has.
type Kernel interface {
	// Servers returns all virtual servers, whoever made them.
	Servers() (map[Key]Server, error)
	CreateServer(Key, Server) error
	UpdateServer(Key, Server) error
	RemoveServer(Key) error

	// Reals returns the real servers of a virtual one.
	Reals(Key) (map[netip.AddrPort]Real, error)
	CreateReal(key Key, real netip.AddrPort, weight uint32) error
	UpdateReal(key Key, real netip.AddrPort, weight uint32) error
	RemoveReal(Key, netip.AddrPort) error

	// Addresses returns those on Link, which is made if it is missing, and elsewhere those on the machine's other
	// interfaces.
	Addresses() (onLink, elsewhere []netip.Addr, err error)
	Bind(netip.Addr) error
	Unbind(netip.Addr) error
}
