package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/conntrack"
	"bonsai/pkg/proxy/healthcheck"
	"bonsai/pkg/proxy/nft"
)

const (
	// settle lets the slices of a service join the service itself.
	settle = 15 * time.Millisecond
	// gcPercent trades a little CPU at changes for a small idle process.
	gcPercent = 40
)

// run proxies until ctx ends.
func run(ctx context.Context, s *settings, log *slog.Logger) error {
	debug.SetGCPercent(gcPercent)
	config, err := daemon.Client("--kubeconfig", s.kubeconfig, component)
	if err != nil {
		return err
	}
	client, err := newClient(s.limits.Apply(config))
	if err != nil {
		return err
	}
	state := proxy.NewState(s.node)
	backends, err := s.backends(log)
	if err != nil {
		return err
	}
	h := newHealth(s.resync, state.Leaving, time.Now)
	loop := &proxy.Loop{
		State: state, Backends: backends, Extras: s.extras(h.ok, log), Settle: settle, MinPeriod: s.minSync, Resync: s.resync, Log: log,
		Begin: h.begin, Done: h.done,
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, follow := range sources(client, state, log) {
		g.Go(func() error { follow(ctx); return ctx.Err() })
	}
	g.Go(func() error { return loop.Run(ctx) })
	g.Go(func() error { return serveHealth(ctx, s.healthz, h, log) })
	g.Go(func() error { return serveMetrics(ctx, s.metrics, h, log) })
	return g.Wait()
}

// backends are the rules that a round writes.
func (s *settings) backends(log *slog.Logger) ([]proxy.Backend, error) {
	config := nft.Config{
		ClusterCIDRs: s.clusterCIDRs, MasqueradeAll: s.masqueradeAll,
		NodePortAddresses: s.nodePortAddresses, Interfaces: interfaceAddresses,
	}
	four, err := nft.Open(false, config, log)
	if err != nil {
		return nil, err
	}
	out := []proxy.Backend{four}
	if s.six() {
		six, err := nft.Open(true, config, log)
		if err != nil {
			return nil, err
		}
		out = append(out, six)
	}
	return s.addressed(out), nil
}

// six tells whether the cluster has addresses of IPv6.
func (s *settings) six() bool {
	return slices.ContainsFunc(s.clusterCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// extras are written after the rules and do not count for health.
func (s *settings) extras(alive func() bool, log *slog.Logger) []proxy.Backend {
	return s.addressed([]proxy.Backend{conntrack.New(), healthcheck.New(alive, log)})
}

// addressed makes --bind-address the node's address, if it names one.
func (s *settings) addressed(all []proxy.Backend) []proxy.Backend {
	if len(s.primary) > 0 {
		for i := range all {
			all[i] = withAddresses{all[i], s.primary}
		}
	}
	return all
}

// withAddresses gives a backend the configured primary address instead of the node object's.
type withAddresses struct {
	proxy.Backend
	addresses []netip.Addr
}

// Apply passes u on.
func (w withAddresses) Apply(ctx context.Context, u proxy.Update) error {
	u.Addresses = w.addresses
	return w.Backend.Apply(ctx, u)
}

// interfaceAddresses lists the machine's addresses.
func interfaceAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list interface addresses: %w", err)
	}
	var out []netip.Addr
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out, nil
}
