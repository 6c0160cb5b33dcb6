package main

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"k8s.io/client-go/rest"

	"bonsai/pkg/netdump"
)

// lookupTimeout is how long the API server's name may take to be found.
const lookupTimeout = 5 * time.Second

// needed are the addresses without which this node is no part of its cluster, and which no Service may take: those of
// the API server that the proxy talks to, and of the routers next to the node, as the machine that has its bridge. What
// cannot be found out is logged: the proxy also keeps Services from addresses that the API servers and nodes publish.
func needed(ctx context.Context, config *rest.Config, log *slog.Logger) []netip.Addr {
	out, err := serverAddresses(ctx, config)
	if err != nil {
		log.Warn("cannot find the API server's addresses, Services could take them", "server", config.Host, "err", err)
	}
	hops, err := nextHops()
	if err != nil {
		log.Warn("cannot list the routers next to the node, Services could take their addresses", "err", err)
	}
	return append(out, hops...)
}

// serverAddresses are those of the server that config names.
func serverAddresses(ctx context.Context, config *rest.Config) ([]netip.Addr, error) {
	u, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil {
		return []netip.Addr{ip.Unmap().WithZone("")}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	for i := range found {
		found[i] = found[i].Unmap()
	}
	return found, err
}

// nextHops are the gateways of the machine's routes.
func nextHops() ([]netip.Addr, error) {
	routes, err := netdump.Routes(netlink.FAMILY_ALL, nil, 0)
	var out []netip.Addr
	add := func(ip net.IP) {
		if a, ok := netip.AddrFromSlice(ip); ok {
			out = append(out, a.Unmap())
		}
	}
	for _, r := range routes {
		add(r.Gw)
		for _, hop := range r.MultiPath {
			add(hop.Gw)
		}
	}
	return out, err
}
