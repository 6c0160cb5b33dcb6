package main

import (
	"log/slog"
	"time"

	"github.com/spf13/pflag"
	proxyconfig "k8s.io/kube-proxy/config/v1alpha1"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
)

// options are the flags, with upstream's names. A flag that is given wins over the configuration file.
type options struct {
	logging    daemon.Logging
	tracing    daemon.Tracing
	limits     daemon.Limits
	configFile string
	writeTo    string
	cleanup    bool
	initOnly   bool
	flags      proxyconfig.KubeProxyConfiguration
	// Of the mode that is chosen, and a pointer in the file.
	masqueradeAll bool
	oomScoreAdj   int32
	masqueradeBit int32
	tracking      trackingOptions
	// Only a flag.
	master string
}

// addFlags registers the flags with their defaults.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	o.tracing.AddFlags(fs)
	c := &o.flags
	fs.StringVar(&o.configFile, "config", "", "The path to the configuration file (kubeproxy.config.k8s.io/v1alpha1).")
	fs.BoolVar(&o.cleanup, "cleanup", false, "If true remove the proxy's rules of every mode and exit.")
	fs.BoolVar(&o.initOnly, "init-only", false,
		"If true, set what needs a process with all rights (the kernel's table of connections, --oom-score-adj), and exit.")
	fs.StringVar(&o.writeTo, "write-config-to", "",
		"If set, write the configuration (the file and the flags, with the defaults) to this file and exit.")
	fs.StringVar(&c.ClientConnection.Kubeconfig, "kubeconfig", "",
		"Path to kubeconfig file with authorization information.")
	fs.StringVar(&c.ShowHiddenMetricsForVersion, "show-hidden-metrics-for-version", "",
		"The previous version for which you want to show hidden metrics. Only the previous minor version is meaningful, other values will not be allowed. No metric is hidden.")
	fs.StringVar(&o.master, "master", "",
		"The address of the Kubernetes API server (overrides any value in kubeconfig).")
	fs.StringVar(&c.HostnameOverride, "hostname-override", "",
		"If non-empty, will be used as the name of the node that kube-proxy is running on.")
	fs.StringVar(&c.BindAddress, "bind-address", "0.0.0.0",
		"The node's primary address, if it is not the one that the node object has.")
	fs.BoolVar(&c.BindAddressHardFail, "bind-address-hard-fail", false,
		"If true, exit when an address of the health or metrics server is not available; otherwise try again.")
	fs.StringVar(&c.HealthzBindAddress, "healthz-bind-address", "0.0.0.0:10256",
		`The address and port of the health server; "" serves none.`)
	fs.StringVar(&c.MetricsBindAddress, "metrics-bind-address", "127.0.0.1:10249",
		`The address and port of the metrics server; "" serves none.`)
	fs.BoolVar(&c.EnableProfiling, "profiling", false, "Serve profiles at /debug/pprof/ of the metrics server.")
	fs.StringVar((*string)(&c.Mode), "proxy-mode", modeNFTables, "Which proxy mode to use: 'nftables', 'iptables' or 'ipvs'.")
	fs.StringVar(&c.ClusterCIDR, "cluster-cidr", "",
		"The CIDR range of the pods in the cluster; traffic to cluster IPs from elsewhere is masqueraded. One per family.")
	fs.StringVar((*string)(&c.DetectLocalMode), "detect-local-mode", localClusterCIDR,
		"How to recognize the node's own pods: 'ClusterCIDR', 'BridgeInterface' or 'InterfaceNamePrefix'.")
	fs.StringVar(&c.DetectLocal.BridgeInterface, "pod-bridge-interface", "",
		"The interface through which packets of the node's pods come, with --detect-local-mode=BridgeInterface.")
	fs.StringVar(&c.DetectLocal.InterfaceNamePrefix, "pod-interface-name-prefix", "",
		"How the names of such interfaces begin, with --detect-local-mode=InterfaceNamePrefix.")
	fs.StringSliceVar(&c.NodePortAddresses, "nodeport-addresses", nil,
		"CIDR ranges of the node's addresses that take NodePort connections, and the words primary (the node's own addresses, the default of the nftables mode), localhost (which takes none) and all (the default of iptables and ipvs).")
	fs.DurationVar(&c.IPTables.SyncPeriod.Duration, "iptables-sync-period", defaultResync,
		"How often the rules of the iptables mode are checked without a change.")
	fs.DurationVar(&c.IPTables.MinSyncPeriod.Duration, "iptables-min-sync-period", defaultIPTablesMinSync,
		"The shortest time between two changes of the rules in the iptables mode; 0 chooses one.")
	fs.BoolVar(&o.masqueradeAll, "masquerade-all", false, "Masquerade all traffic sent to cluster IPs.")
	fs.DurationVar(&c.NFTables.SyncPeriod.Duration, "nftables-sync-period", defaultResync,
		"How often the rules are checked without a change.")
	fs.DurationVar(&c.NFTables.MinSyncPeriod.Duration, "nftables-min-sync-period", 0,
		"The shortest time between two changes of the rules; 0 chooses one.")
	fs.Int32Var(&o.masqueradeBit, "iptables-masquerade-bit", 14,
		"The bit of a packet's mark that has it masqueraded in the iptables mode, 0 to 31.")
	fs.Int32Var(&o.oomScoreAdj, "oom-score-adj", 0,
		"The oom_score_adj of the process; without it, that of whoever starts it.")
	o.addIPVSFlags(fs)
	o.tracking.addFlags(fs)
	o.limits.AddFlags(fs, 10)
	featuregates.AddMapFlag(fs, &c.FeatureGates)
	accepted().AddFlags(fs)
}

// addIPVSFlags registers the flags of the ipvs mode.
func (o *options) addIPVSFlags(fs *pflag.FlagSet) {
	c := &o.flags.IPVS
	fs.StringVar(&c.Scheduler, "ipvs-scheduler", "",
		"How the ipvs mode chooses an endpoint: rr (the default), wrr, lc, wlc, lblc, lblcr, sh, dh, sed, nq or mh.")
	fs.DurationVar(&c.SyncPeriod.Duration, "ipvs-sync-period", defaultResync,
		"How often the virtual servers of the ipvs mode are checked without a change.")
	fs.DurationVar(&c.MinSyncPeriod.Duration, "ipvs-min-sync-period", defaultIPVSMinSync,
		"The shortest time between two changes of virtual servers in the ipvs mode.")
	fs.StringSliceVar(&c.ExcludeCIDRs, "ipvs-exclude-cidrs", nil,
		"CIDR ranges of addresses whose virtual servers the ipvs mode does not remove.")
	fs.BoolVar(&c.StrictARP, "ipvs-strict-arp", false,
		"Do not answer ARP for addresses of Services, in the ipvs mode: sets arp_ignore to 1 and arp_announce to 2.")
	fs.DurationVar(&c.TCPTimeout.Duration, "ipvs-tcp-timeout", 0,
		"How long IPVS remembers idle TCP connections; 0 leaves it as it is.")
	fs.DurationVar(&c.TCPFinTimeout.Duration, "ipvs-tcpfin-timeout", 0,
		"How long IPVS remembers TCP connections after a FIN; 0 leaves it as it is.")
	fs.DurationVar(&c.UDPTimeout.Duration, "ipvs-udp-timeout", 0,
		"How long IPVS remembers clients over UDP; 0 leaves it as it is.")
}

// accepted are flags that have no effect: changes are watched, and requests are protobuf.
func accepted() daemon.AcceptedFlags {
	return daemon.AcceptedFlags{
		{Why: "requests are protobuf", Strings: []string{"kube-api-content-type"}},
		{Why: "node ports are never open at loopback addresses", Bools: []string{"iptables-localhost-nodeports"}},
		{Why: "changes are watched", Durations: []string{"config-sync-period"}},
	}
}

// configuration is the file, if there is one, with the flags that were given over it.
func (o *options) configuration(fs *pflag.FlagSet, log *slog.Logger) (*proxyconfig.KubeProxyConfiguration, error) {
	c := &proxyconfig.KubeProxyConfiguration{}
	if o.configFile != "" {
		var err error
		if c, err = readConfiguration(o.configFile, log); err != nil {
			return nil, err
		}
	}
	f := &o.flags
	for flag, take := range map[string]func(){
		"kubeconfig":                func() { c.ClientConnection.Kubeconfig = f.ClientConnection.Kubeconfig },
		"kube-api-qps":              func() { c.ClientConnection.QPS = o.limits.QPS },
		"kube-api-burst":            func() { c.ClientConnection.Burst = int32(min(o.limits.Burst, 1<<31-1)) },
		"hostname-override":         func() { c.HostnameOverride = f.HostnameOverride },
		"bind-address":              func() { c.BindAddress = f.BindAddress },
		"bind-address-hard-fail":    func() { c.BindAddressHardFail = f.BindAddressHardFail },
		"healthz-bind-address":      func() { c.HealthzBindAddress = f.HealthzBindAddress },
		"metrics-bind-address":      func() { c.MetricsBindAddress = f.MetricsBindAddress },
		"profiling":                 func() { c.EnableProfiling = f.EnableProfiling },
		"proxy-mode":                func() { c.Mode = f.Mode },
		"cluster-cidr":              func() { c.ClusterCIDR = f.ClusterCIDR },
		"detect-local-mode":         func() { c.DetectLocalMode = f.DetectLocalMode },
		"pod-bridge-interface":      func() { c.DetectLocal.BridgeInterface = f.DetectLocal.BridgeInterface },
		"pod-interface-name-prefix": func() { c.DetectLocal.InterfaceNamePrefix = f.DetectLocal.InterfaceNamePrefix },
		"nodeport-addresses":        func() { c.NodePortAddresses = f.NodePortAddresses },
		"iptables-sync-period":      func() { c.IPTables.SyncPeriod = f.IPTables.SyncPeriod },
		"iptables-min-sync-period":  func() { c.IPTables.MinSyncPeriod = f.IPTables.MinSyncPeriod },
		"nftables-sync-period":      func() { c.NFTables.SyncPeriod = f.NFTables.SyncPeriod },
		"nftables-min-sync-period":  func() { c.NFTables.MinSyncPeriod = f.NFTables.MinSyncPeriod },
		"masquerade-all": func() {
			c.IPTables.MasqueradeAll, c.NFTables.MasqueradeAll = o.masqueradeAll, o.masqueradeAll
		},
		"iptables-masquerade-bit": func() { c.IPTables.MasqueradeBit = &o.masqueradeBit },
		"ipvs-scheduler":          func() { c.IPVS.Scheduler = f.IPVS.Scheduler },
		"ipvs-sync-period":        func() { c.IPVS.SyncPeriod = f.IPVS.SyncPeriod },
		"ipvs-min-sync-period":    func() { c.IPVS.MinSyncPeriod = f.IPVS.MinSyncPeriod },
		"ipvs-exclude-cidrs":      func() { c.IPVS.ExcludeCIDRs = f.IPVS.ExcludeCIDRs },
		"ipvs-strict-arp":         func() { c.IPVS.StrictARP = f.IPVS.StrictARP },
		"ipvs-tcp-timeout":        func() { c.IPVS.TCPTimeout = f.IPVS.TCPTimeout },
		"ipvs-tcpfin-timeout":     func() { c.IPVS.TCPFinTimeout = f.IPVS.TCPFinTimeout },
		"ipvs-udp-timeout":        func() { c.IPVS.UDPTimeout = f.IPVS.UDPTimeout },
		"oom-score-adj":           func() { c.OOMScoreAdj = &o.oomScoreAdj },
		"feature-gates":           func() { c.FeatureGates = f.FeatureGates },
		"show-hidden-metrics-for-version": func() {
			c.ShowHiddenMetricsForVersion = f.ShowHiddenMetricsForVersion
		},
	} {
		if fs.Changed(flag) {
			take()
		}
	}
	o.tracking.over(&c.Conntrack, fs.Changed)
	c.Logging = o.logging.Over(c.Logging, fs.Changed).Config
	if c.Mode == "" {
		log.Warn("No mode of the proxy is set: it is nftables. That of Kubernetes is iptables before 1.40. " +
			"Say which with --proxy-mode, or with mode in the configuration file")
	}
	setDefaults(c, fs.Changed)
	return c, nil
}

// rules are what the configuration says of the mode that is chosen.
type rules struct {
	masqueradeAll   bool
	masqueradeMark  uint32
	resync, minSync time.Duration
}

func rulesOf(c *proxyconfig.KubeProxyConfiguration) rules {
	if t := &c.IPTables; c.Mode == modeIPTables {
		return rules{t.MasqueradeAll, 1 << *t.MasqueradeBit, t.SyncPeriod.Duration, t.MinSyncPeriod.Duration}
	}
	if c.Mode == modeIPVS { // which has its marks from the section of iptables, as upstream does
		return rules{c.IPTables.MasqueradeAll, 1 << *c.IPTables.MasqueradeBit, c.IPVS.SyncPeriod.Duration,
			c.IPVS.MinSyncPeriod.Duration}
	}
	t := &c.NFTables
	return rules{t.MasqueradeAll, 1 << *t.MasqueradeBit, t.SyncPeriod.Duration, t.MinSyncPeriod.Duration}
}
