package cluster

import (
	"context"
	"fmt"
	"net/netip"

	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
)

// apiServer is one API server of a cluster.
type apiServer struct{ name, url string }

// apiServers returns the API servers of the cluster, also those of other machines.
func apiServers(c plan.Config) []apiServer {
	var all []apiServer
	for _, p := range c.Peers {
		all = append(all, apiServer{"the API server of " + p.Name, "https://" + p.API.String()})
	}
	switch {
	case len(all) > 1:
		return all
	case !c.IsHighlyAvailable():
		return []apiServer{{"kube-apiserver", c.LocalServer()}}
	}
	all = nil
	for _, m := range c.Members() {
		all = append(all, apiServer{m.Of("kube-apiserver"),
			"https://" + netip.AddrPortFrom(m.Address(), uint16(c.Ports.API)).String()})
	}
	return all
}

// waitServers waits until all API servers of the cluster are ready. On a machine that has joined as a node alone, it
// waits for the one that the machine's components reach.
//
// An API server is ready only if its own etcd answers it with the agreement of a majority. So whoever ends a part of a
// control plane calls it before and after: no two etcds of three are away at the same time.
func waitServers(ctx context.Context, c plan.Config) error {
	servers := []apiServer{{"the API server", c.LocalServer()}}
	if c.HasControlPlane() {
		servers = apiServers(c)
	}
	for _, s := range servers {
		if err := client.WaitReadyAt(ctx, c, s.url); err != nil {
			return fmt.Errorf("wait for %s: %w", s.name, err)
		}
	}
	return nil
}
