package plan

import (
	"net/netip"
	"slices"
	"strconv"
)

// Member is one control plane: etcd, API server, controller manager and scheduler. A single one is in the host's
// namespaces. If there are several, each has its own host name and its own network namespace on the node network, and
// the host has a balancer before their API servers.
type Member struct {
	Number int // 1 to MaxControlPlanes; 0 is a single one
	Mark   string
	// Addresses are its host's on the node networks. Its API server listens at the first, everything else of it at
	// Local.
	Addresses []netip.Addr
	Local     string
}

// Address is the first of Addresses, where the API server listens.
func (m Member) Address() netip.Addr { return m.Addresses[0] }

// MaxControlPlanes is the number of control planes of a highly available cluster: three etcds still have a majority
// while one is missing.
const MaxControlPlanes = 3

// IsHighlyAvailable reports whether there are several control planes.
func (c Config) IsHighlyAvailable() bool { return c.ControlPlanes > 1 }

// Members returns the control planes on this machine, none on a machine that has joined as a node alone.
func (c Config) Members() []Member {
	switch {
	case !c.HasControlPlane():
		return nil // they are on another machine
	case c.Joined != nil:
		return []Member{{Mark: c.Mark(), Addresses: []netip.Addr{c.Joined.Address}, Local: Loopback}}
	}
	if !c.IsHighlyAvailable() {
		return []Member{{Mark: c.Mark(), Addresses: c.Networks().HostIPs(), Local: Loopback}}
	}
	var all []Member
	for i := 1; i <= c.ControlPlanes; i++ {
		all = append(all, Member{Number: i, Mark: c.Mark(), Addresses: nthOfEach(c.Networks().Nodes(), 1+i),
			Local: Loopback})
	}
	return all
}

// Name is the host name of one of several members, which also ends the names of its things; "" for a single one.
func (m Member) Name() string {
	if m.Number == 0 {
		return ""
	}
	return "cp" + strconv.Itoa(m.Number)
}

// Of names a thing of the member: "etcd", or "etcd-cp1" if there are several.
func (m Member) Of(thing string) string {
	if m.Number == 0 {
		return thing
	}
	return thing + "-" + m.Name()
}

// Namespace names the network namespace of one of several members.
func (m Member) Namespace() string { return m.Mark + "-" + m.Name() }

// NetnsDir is where network namespaces with a name are mounted (ip-netns(8)).
const NetnsDir = "/run/netns/"

// HostNamespace is the name under which several control planes find the host's network namespace.
func (c Config) HostNamespace() string { return c.Mark() + "-host" }

// LocalNetworks returns the files of the network namespaces of this machine's control plane: the host's and those of
// several members. Their API servers refuse connections to an address in any of them on behalf of pods, Services and
// APIServices; without the list, each would recognize only the addresses of its own namespace.
func (c Config) LocalNetworks() []string {
	if !c.IsHighlyAvailable() {
		return nil
	}
	files := []string{NetnsDir + c.HostNamespace()}
	for _, m := range c.Members() {
		files = append(files, NetnsDir+m.Namespace())
	}
	return files
}

// IPs returns the addresses at which a thing of the member is reached: its own, if the host does not have them too, and
// others.
func (m Member) IPs(others ...netip.Addr) []netip.Addr {
	if m.Number == 0 {
		return others
	}
	return append(slices.Clone(m.Addresses), others...)
}
