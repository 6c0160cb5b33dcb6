package main

import (
	"net"
	"net/netip"
	"time"

	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"
)

// Modes, by their names in flags and files.
const (
	modeNFTables = "nftables"
	modeIPTables = "iptables"
	modeIPVS     = "ipvs"
)

// How the node's pods are recognized, by the names in flags and files.
const (
	localClusterCIDR = "ClusterCIDR"
	localBridge      = "BridgeInterface"
	localPrefix      = "InterfaceNamePrefix"
)

// The default periods.
const (
	defaultNFTablesMinSync = 250 * time.Millisecond
	defaultIPTablesMinSync = time.Second
	defaultIPVSMinSync     = time.Second
	defaultResync          = 30 * time.Second
)

// The default ports.
const (
	healthzPort = "10256"
	metricsPort = "10249"
)

// setDefaults fills in missing values. They are upstream's, except the mode, and the shortest time between two rounds
// of the nftables mode, which is a second upstream. given reports whether a flag was given: an address that is given as
// "" stays so.
func setDefaults(c *proxyconfig.KubeProxyConfiguration, given func(flag string) bool) {
	text := func(p *string, v string) {
		if *p == "" {
			*p = v
		}
	}
	text((*string)(&c.Mode), modeNFTables)
	text(&c.BindAddress, "0.0.0.0")
	text((*string)(&c.DetectLocalMode), localClusterCIDR)
	all, loopback := "0.0.0.0", "127.0.0.1"
	if a, err := netip.ParseAddr(c.BindAddress); err == nil && a.Is6() {
		all, loopback = "::", "::1"
	}
	for flag, v := range map[string]struct {
		address    *string
		host, port string
	}{
		"healthz-bind-address": {&c.HealthzBindAddress, all, healthzPort},
		"metrics-bind-address": {&c.MetricsBindAddress, loopback, metricsPort},
	} {
		switch {
		case *v.address == "" && !given(flag):
			*v.address = net.JoinHostPort(v.host, v.port)
		case net.ParseIP(*v.address) != nil:
			*v.address = net.JoinHostPort(*v.address, v.port)
		}
	}
	bit := int32(14)
	for _, p := range []**int32{&c.IPTables.MasqueradeBit, &c.NFTables.MasqueradeBit} {
		if *p == nil {
			*p = &bit
		}
	}
	duration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	switch c.Mode {
	case modeNFTables:
		duration(&c.NFTables.SyncPeriod.Duration, defaultResync)
		duration(&c.NFTables.MinSyncPeriod.Duration, defaultNFTablesMinSync)
		if len(c.NodePortAddresses) == 0 {
			c.NodePortAddresses = []string{primaryAddresses}
		}
	case modeIPTables:
		duration(&c.IPTables.SyncPeriod.Duration, defaultResync)
		duration(&c.IPTables.MinSyncPeriod.Duration, defaultIPTablesMinSync)
	case modeIPVS:
		text(&c.IPVS.Scheduler, "rr")
		duration(&c.IPVS.SyncPeriod.Duration, defaultResync)
		duration(&c.IPVS.MinSyncPeriod.Duration, defaultIPVSMinSync)
	}
}
