package machine

import (
	"net/netip"

	"bonsai/pkg/cluster/plan"
)

// Survey finds everything that the cluster could collide with. It changes nothing. clusters are those of this machine
// (Home.Clusters). contexts are those of the user's kubeconfig, each with the data directory of the cluster that it is
// for, or "".
//
// It reads the routes and addresses at once, and leaves the ports as functions: each test of a port opens a socket, and
// only the chosen ones are tested.
func Survey(c plan.Config, clusters []plan.Config, contexts map[string]string) (plan.Machine, error) {
	m := plan.Machine{Contexts: contexts, PortOwner: func(at netip.AddrPort) string {
		return portOwner(at, c.Mark())
	}, UDPTaken: udpTaken}
	for _, other := range clusters {
		if other.DataDir != c.DataDir {
			m.Clusters = append(m.Clusters, other)
		}
	}
	var err error
	m.Networks, err = hostNetworks(c)
	return m, err
}
