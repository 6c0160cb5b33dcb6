package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/conntrack"
	"bonsai/pkg/proxy/healthcheck"
	"bonsai/pkg/proxy/iptables"
	"bonsai/pkg/proxy/ipvs"
	"bonsai/pkg/proxy/nft"
	"bonsai/pkg/zpages"
)

const (
	// settle is how long the slices of a service may follow the service itself and still share its round.
	settle = 15 * time.Millisecond
	// gcPercent trades a little CPU at changes for a small idle process.
	gcPercent = 40
)

// run proxies until ctx ends.
func run(ctx context.Context, s *settings, pages *zpages.Config, log *slog.Logger) error {
	debug.SetGCPercent(gcPercent)
	if err := s.setOOMScore(); err != nil {
		log.Warn("cannot set oomScoreAdj", "err", err)
	}
	if err := setTracking("/proc/sys", &s.tracking); err != nil {
		return err
	}
	config, err := daemon.Client("--kubeconfig", s.kubeconfig, s.master, component)
	if err != nil {
		return err
	}
	registry := daemon.NewMetrics()
	requests := daemon.NewRequests(registry)
	config = s.limits.Apply(config, requests)
	requests.Count(config)
	client, err := newClient(config)
	if err != nil {
		return err
	}
	if s.mode == modeIPVS {
		log.Warn("The ipvs proxier is now deprecated and may be removed in a future release. " +
			"Please use 'nftables' instead.")
	}
	tracer, lastSpans, err := s.tracing.Open(ctx, component, s.node, registry, log)
	if err != nil {
		return err
	}
	defer lastSpans()
	state := proxy.NewState(s.node)
	state.Arrivals = tracer != nil
	state.Protect(needed(ctx, config, log), s.clusterCIDRs)
	m := newMetrics(s.mode, state, registry)
	backends, err := s.backends(m, log)
	if err != nil {
		return err
	}
	state.Queued = func() { m.queue(len(backends), time.Now()) }
	h := newHealth(len(backends), s.rules.resync, m, state.Leaving, time.Now)
	if err := s.removeOtherModes(ctx); err != nil {
		log.Warn("cannot remove the rules of the other modes", "err", err)
	}
	loop := &proxy.Loop{
		State: state, Backends: backends,
		Extras: append(s.extras(h.ok, log), &observer{health: h, lacking: map[proxy.Name]lack{}}), Settle: settle,
		MinPeriod: s.rules.minSync, Resync: s.rules.resync, Log: log,
		Begin: h.begin, Done: h.done,
	}
	if tracer != nil {
		loop.Arrived = func(all []proxy.Arrival, at time.Time) { recordArrivals(tracer, all, at) }
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, follow := range sources(client, state, log) {
		g.Go(func() error { follow(ctx); return ctx.Err() })
	}
	g.Go(func() error { return loop.Run(ctx) })
	g.Go(func() error {
		return s.keepServing(ctx, func() error { return serveHealth(ctx, s.healthz, h, log) }, log)
	})
	g.Go(func() error {
		return s.keepServing(ctx, func() error {
			return serveMetrics(ctx, s.metrics, h, pages, s.profiling.Paths(), registry, log)
		}, log)
	})
	return g.Wait()
}

// backends returns the writers of rules, in the order of families; m receives the results of their rounds.
func (s *settings) backends(m *metrics, log *slog.Logger) ([]proxy.Backend, error) {
	all := []bool{false}
	if s.six() {
		all = append(all, true)
	}
	var out []proxy.Backend
	for _, six := range all {
		b, err := s.backend(six, m, log)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return s.addressed(out), nil
}

// backend returns the writer of one family's rules.
func (s *settings) backend(six bool, m *metrics, log *slog.Logger) (proxy.Backend, error) {
	switch s.mode {
	case modeIPVS:
		return ipvs.Open(six, ipvs.Config{
			Scheduler: s.ipvs.Scheduler, Exclude: prefixes(s.ipvs.ExcludeCIDRs), StrictARP: s.ipvs.StrictARP,
			Timeouts: ipvs.Timeouts{TCP: s.ipvs.TCPTimeout.Duration, TCPFin: s.ipvs.TCPFinTimeout.Duration,
				UDP: s.ipvs.UDPTimeout.Duration},
			ClusterCIDRs: s.clusterCIDRs, PodInterface: s.podInterface, MasqueradeAll: s.rules.masqueradeAll,
			MasqueradeMark: s.rules.masqueradeMark, NodePorts: s.takeNodePorts, Now: time.Now,
		}, log)
	case modeIPTables:
		return iptables.Open(six, iptables.Config{
			ClusterCIDRs: s.clusterCIDRs, PodInterface: s.podInterface, MasqueradeAll: s.rules.masqueradeAll,
			MasqueradeMark: s.rules.masqueradeMark,
			Primary:        s.primaryNodePorts, NodePortAddresses: s.nodePortAddresses, Interfaces: interfaceAddresses,
			Now: time.Now, Wrote: m.restored,
		}, log)
	}
	return nft.Open(six, nft.Config{
		ClusterCIDRs: s.clusterCIDRs, PodInterface: s.podInterface, MasqueradeAll: s.rules.masqueradeAll,
		MasqueradeMark: s.rules.masqueradeMark,
		Primary:        s.primaryNodePorts, NodePortAddresses: s.nodePortAddresses, Interfaces: interfaceAddresses,
		Now: time.Now, Wrote: m.wrote,
	}, log)
}

// removeOtherModes removes what proxies of the other modes left: two of them would both translate.
func (s *settings) removeOtherModes(ctx context.Context) error {
	var errs []error
	for mode, remove := range map[string]func(context.Context) error{modeNFTables: nft.Remove,
		modeIPTables: iptables.Remove, modeIPVS: ipvs.Remove} {
		if mode != s.mode {
			errs = append(errs, remove(ctx))
		}
	}
	return errors.Join(errs...)
}

// serveAgain is how long a server that failed waits; upstream's.
const serveAgain = 5 * time.Second

// keepServing runs a server until ctx ends. A server that fails is started again, because another process may hold its
// port for a while, unless a failure is to end the process.
func (s *settings) keepServing(ctx context.Context, run func() error, log *slog.Logger) error {
	for {
		err := run()
		if ctx.Err() != nil || s.hardFail {
			return err
		}
		log.Error("A server of the proxy failed, trying again", "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(serveAgain):
		}
	}
}

// setOOMScore sets how soon the kernel kills the proxy when memory runs out. A lower value than before needs the
// capability CAP_SYS_RESOURCE.
func (s *settings) setOOMScore() error {
	if s.oomScoreAdj == nil {
		return nil
	}
	return os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(int(*s.oomScoreAdj))), 0)
}

// six reports whether the cluster has IPv6 addresses.
func (s *settings) six() bool {
	return slices.ContainsFunc(s.clusterCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() })
}

// extras returns the backends that run after the rules and do not count for health.
func (s *settings) extras(alive func() bool, log *slog.Logger) []proxy.Backend {
	return s.addressed([]proxy.Backend{conntrack.New(s.takeNodePorts), healthcheck.New(alive, log)})
}

// takeNodePorts returns the machine's addresses that take node ports; own are the node's.
func (s *settings) takeNodePorts(own []netip.Addr) ([]netip.Addr, error) {
	if s.primaryNodePorts && len(s.nodePortAddresses) == 0 {
		return own, nil
	}
	all, err := interfaceAddresses()
	return slices.DeleteFunc(all, func(a netip.Addr) bool {
		return len(s.nodePortAddresses) > 0 && !(s.primaryNodePorts && slices.Contains(own, a)) &&
			!slices.ContainsFunc(s.nodePortAddresses, func(p netip.Prefix) bool { return p.Contains(a) })
	}), err
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

// interfaceAddresses lists the machine's addresses, without those of Services that the ipvs mode gives it.
func interfaceAddresses() ([]netip.Addr, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the machine's interfaces: %w", err)
	}
	var out []netip.Addr
	for i := range links {
		if links[i].Name == ipvs.Link {
			continue
		}
		all, err := links[i].Addrs()
		if err != nil {
			continue // it went meanwhile, as interfaces of pods do
		}
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					out = append(out, ip.Unmap())
				}
			}
		}
	}
	return out, nil
}
