package plan

import (
	"net/netip"
	"slices"
	"strconv"
)

// member is one control plane: etcd, API server, controller manager and scheduler. The only one is in the host's
// namespaces. Of several,
// each has a host's name and a network namespace of its own on the node network, and the host has a balancer before
// their API servers.
type Member struct {
	Number int // 1 to maxControlPlanes; 0 is the only one
	Mark   string
	// addresses are its host's on the node networks. Its API server listens at the first, everything else of it at
	// local.
	Addresses []netip.Addr
	Local     string
}

func (m Member) Address() netip.Addr { return m.Addresses[0] }

// maxControlPlanes is how many control planes a highly available cluster has: etcd serves on while one of three is
// missing.
const MaxControlPlanes = 3

// highlyAvailable reports whether there are several control planes.
func (c Config) IsHighlyAvailable() bool { return c.ControlPlanes > 1 }

// members are the cluster's control planes.
func (c Config) Members() []Member {
	if c.Joined != nil {
		return nil // they are on another machine
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

// name is the host's name of one of several, and ends the names of what belongs to it; "" for the only one.
func (m Member) Name() string {
	if m.Number == 0 {
		return ""
	}
	return "cp" + strconv.Itoa(m.Number)
}

// of is the name of the member's own thing: "etcd", or of one of several "etcd-cp1".
func (m Member) Of(thing string) string {
	if m.Number == 0 {
		return thing
	}
	return thing + "-" + m.Name()
}

// namespace is the name of the network namespace of one of several.
func (m Member) Namespace() string { return m.Mark + "-" + m.Name() }

// networksDir has a mount for each network namespace that has a name (ip-netns(8)).
const NetnsDir = "/run/netns/"

// hostNamespace is the name that the host's network namespace gets where there are several control planes.
func (c Config) HostNamespace() string { return c.Mark() + "-host" }

// localNetworks are the network namespaces of this machine's control plane, by their files: the host's and those of
// several members. Their API
// servers connect to no address in them on behalf of pods, Services and APIServices; each would see those of its own
// alone.
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

// ips are addresses at which something of the member is reached: its own, if it has one that the host has not, and
// others.
func (m Member) IPs(others ...netip.Addr) []netip.Addr {
	if m.Number == 0 {
		return others
	}
	return append(slices.Clone(m.Addresses), others...)
}
