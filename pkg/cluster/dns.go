package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/publish"
)

// dnsLook is how often it is looked where the cluster's DNS and its nodes are.
const dnsLook = 2 * time.Second

// ServeDNS answers at listen for the names of the running cluster in dataDir, as its DNS does, and leads from this
// machine to the addresses of its Services, until ctx ends. It changes nothing else on the machine: out is told how to
// use it.
func ServeDNS(ctx context.Context, dataDir string, listen netip.AddrPort, out io.Writer, log *slog.Logger) (err error) {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	if paused(c) || !running(ctx, c) {
		return notRunning(c)
	}
	if !c.HasAddon(plan.DNSAddon) {
		return fmt.Errorf("the cluster in %s has no DNS (bonsai stop, then bonsai up --addons %s)", dataDir,
			plan.DNSAddon)
	}
	udp := plan.PortMapping{Address: listen.Addr(), HostPort: int(listen.Port()), NodePort: 53, UDP: true}
	tcp := udp
	tcp.UDP = false
	if err := udp.Check(); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	p := publish.New(log)
	wait, err := p.Publish(ctx, []plan.PortMapping{udp, tcp})
	if err != nil {
		end()
		return fmt.Errorf("--listen: %w", err)
	}
	defer func() { end(); wait() }()
	defer func() { err = errors.Join(err, network.RouteThrough(c, c.Networks().Services(), nil)) }()
	for told := false; ; {
		gateways, servers, err := whereServicesAre(ctx, c)
		if err == nil {
			err = network.RouteThrough(c, c.Networks().Services(), gateways)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		// an API server that is started again, for one; what was found holds until then
		case err != nil && told && network.Stands(c):
			log.Warn("cannot look where the cluster's DNS and its nodes are", "err", err)
		case err != nil:
			return err
		default:
			p.LeadTo(servers)
		}
		if !told {
			if _, err := fmt.Fprintf(out, dnsMessage, listen, listen.Addr(), listen.Port(), c.Mark()); err != nil {
				return err
			}
			told = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(dnsLook):
		}
	}
}

const dnsMessage = `Answering for cluster.local at %[1]s, and leading to Services, until you end this (Ctrl-C). Try:
  dig @%[2]s -p %[3]d +short kubernetes.default.svc.cluster.local
Nothing else of this machine is changed. For all programs to ask it, with systemd-resolved (which forgets it with the cluster):
  resolvectl dns %[4]s %[1]s; resolvectl domain %[4]s '~cluster.local'
or in dnsmasq's configuration:
  server=/cluster.local/%[2]s#%[3]d
`

// whereServicesAre returns the nodes that lead to Services, and the pods of the cluster's DNS.
func whereServicesAre(ctx context.Context, c plan.Config) (gateways, servers []netip.Addr, err error) {
	api, err := client.Core(c)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := core.Nodes(api).List(ctx, "", metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the nodes: %w", err)
	}
	pods, err := core.Pods(api).List(ctx, metav1.NamespaceSystem, metav1.ListOptions{LabelSelector: dnsPods})
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods of the cluster's DNS: %w", err)
	}
	for _, p := range pods {
		if a, err := netip.ParseAddr(p.Status.PodIP); err == nil && client.IsPodReady(p) {
			servers = append(servers, a)
		}
	}
	return network.BalancerGateways(c, nodes), servers, nil
}
