package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/plan"
)

// lookEvery is the time between two looks for the pods of the cluster's DNS and for its nodes.
const lookEvery = 2 * time.Second

// Forwarder answers on addresses of this machine, and forwards what comes there to servers (publish.Publisher).
type Forwarder interface {
	Publish(ctx context.Context, at []plan.PortMapping) (wait func(), err error)
	LeadTo(servers []netip.Addr)
}

// Network is the cluster's network on this machine.
type Network interface {
	// RouteServices makes this machine send packets for Services to the gateways; without any, it removes the routes.
	RouteServices(gateways []netip.Addr) error
	// Gateways returns the addresses of the nodes that forward to Services.
	Gateways(nodes []*corev1.Node) []netip.Addr
	// Stands reports whether the cluster's network is there.
	Stands() bool
}

// Serve answers at listen for the names of the running cluster, as its DNS does, and routes from this machine to the
// addresses of its Services, until ctx ends. It changes nothing else on the machine, and prints to out how to use it.
//
// An API server that does not answer, because it is being started again for example, ends Serve only at the beginning
// or with the cluster's network: until then, what was found before holds.
func Serve(ctx context.Context, c plan.Config, listen netip.AddrPort, f Forwarder, network Network, out io.Writer,
	log *slog.Logger) (err error) {
	udp := plan.PortMapping{Address: listen.Addr(), HostPort: int(listen.Port()), NodePort: 53, UDP: true}
	tcp := udp
	tcp.UDP = false
	if err := udp.Check(); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	wait, err := f.Publish(ctx, []plan.PortMapping{udp, tcp})
	if err != nil {
		end()
		return fmt.Errorf("--listen: %w", err)
	}
	defer func() { end(); wait() }()
	defer func() { err = errors.Join(err, network.RouteServices(nil)) }()
	for told := false; ; {
		gateways, servers, err := whereServicesAre(ctx, c, network)
		if err == nil {
			err = network.RouteServices(gateways)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && told && network.Stands():
			log.Warn("cannot look where the cluster's DNS and its nodes are", "err", err)
		case err != nil:
			return err
		default:
			f.LeadTo(servers)
		}
		// The instructions come when the server works for the first time.
		if !told {
			if _, err := fmt.Fprintf(out, message, listen, listen.Addr(), listen.Port(), c.Mark()); err != nil {
				return err
			}
			told = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(lookEvery):
		}
	}
}

const message = `Answering for cluster.local at %[1]s, and leading to Services, until you end this (Ctrl-C). Try:
  dig @%[2]s -p %[3]d +short kubernetes.default.svc.cluster.local
Nothing else of this machine is changed. For all programs to ask it, with systemd-resolved (which forgets it with the cluster):
  resolvectl dns %[4]s %[1]s; resolvectl domain %[4]s '~cluster.local'
or in dnsmasq's configuration:
  server=/cluster.local/%[2]s#%[3]d
`

// whereServicesAre returns the nodes that forward to Services, and the Ready pods of the cluster's DNS.
func whereServicesAre(ctx context.Context, c plan.Config, network Network) (gateways, servers []netip.Addr, err error) {
	api, err := client.Core(c)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := core.Nodes(api).List(ctx, "", metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("list the nodes: %w", err)
	}
	pods, err := core.Pods(api).List(ctx, metav1.NamespaceSystem, metav1.ListOptions{LabelSelector: podSelector})
	if err != nil {
		return nil, nil, fmt.Errorf("list the pods of the cluster's DNS: %w", err)
	}
	for _, p := range pods {
		if a, err := netip.ParseAddr(p.Status.PodIP); err == nil && client.IsPodReady(p) {
			servers = append(servers, a)
		}
	}
	return network.Gateways(nodes), servers, nil
}
