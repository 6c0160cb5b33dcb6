package cluster

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/dns"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/publish"
)

// ServeDNS answers at listen for the names of the running cluster in dataDir, and routes from this machine to the
// addresses of its Services, until ctx ends (dns.Serve). It changes nothing in the cluster and holds no lock. The
// routes are removed at its end, or go with the cluster's link.
func ServeDNS(ctx context.Context, dataDir string, listen netip.AddrPort, out io.Writer, log *slog.Logger) error {
	c, err := datadir.LoadFirst(dataDir)
	if err != nil {
		return err
	}
	if paused(c) || !running(ctx, c) {
		return notRunning(c)
	}
	if !c.HasAddon(plan.DNSAddon) {
		return fmt.Errorf("the cluster in %s has no DNS (bonsai up --addons %s)", dataDir,
			plan.DNSAddon)
	}
	return dns.Serve(ctx, c, listen, publish.New(log), clusterNetwork{c}, out, log)
}

// clusterNetwork is the network of a cluster on this machine, as package dns uses it.
type clusterNetwork struct{ plan.Config }

// RouteServices implements dns.Network.
func (n clusterNetwork) RouteServices(gateways []netip.Addr) error {
	return network.RouteThrough(n.Config, n.Networks().Services(), gateways)
}

// Gateways implements dns.Network.
func (n clusterNetwork) Gateways(nodes []*corev1.Node) []netip.Addr {
	return network.BalancerGateways(n.Config, nodes)
}

// Stands implements dns.Network.
func (n clusterNetwork) Stands() bool { return network.Stands(n.Config) }
