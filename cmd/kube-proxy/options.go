package main

import (
	"time"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/featuregates"
)

// options are the flags, with upstream's names. A flag that is given wins over the configuration file.
type options struct {
	logging    daemon.Logging
	limits     daemon.Limits
	configFile string
	cleanup    bool
	// masqueradeAll is that of the mode that is chosen.
	masqueradeAll bool
	flags         configuration
}

// addFlags registers the flags with their defaults.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	c := &o.flags
	fs.StringVar(&o.configFile, "config", "", "The path to the configuration file (kubeproxy.config.k8s.io/v1alpha1).")
	fs.BoolVar(&o.cleanup, "cleanup", false, "If true remove the proxy's rules of every mode and exit.")
	fs.StringVar(&c.ClientConnection.Kubeconfig, "kubeconfig", "", "Path to kubeconfig file with authorization information.")
	fs.StringVar(&c.HostnameOverride, "hostname-override", "", "If non-empty, will be used as the name of the node that kube-proxy is running on.")
	fs.StringVar(&c.BindAddress, "bind-address", "0.0.0.0", "The node's primary address, if it is not the one that the node object has.")
	fs.StringVar(&c.HealthzBindAddress, "healthz-bind-address", "0.0.0.0:10256", `The address and port of the health server; "" serves none.`)
	fs.StringVar(&c.MetricsBindAddress, "metrics-bind-address", "127.0.0.1:10249", `The address and port of the metrics server; "" serves none.`)
	fs.StringVar(&c.Mode, "proxy-mode", "nftables", "Which proxy mode to use: 'nftables' or 'iptables'.")
	fs.StringVar(&c.ClusterCIDR, "cluster-cidr", "", "The CIDR range of the pods in the cluster; traffic to cluster IPs from elsewhere is masqueraded. One per family.")
	fs.StringSliceVar(&c.NodePortAddresses, "nodeport-addresses", nil, `CIDR ranges of the node's addresses that take NodePort connections, or "primary" (the default).`)
	fs.DurationVar(&c.IPTables.SyncPeriod.Duration, "iptables-sync-period", 30*time.Second, "How often the rules of the iptables mode are checked without a change.")
	fs.DurationVar(&c.IPTables.MinSyncPeriod.Duration, "iptables-min-sync-period", time.Second, "The shortest time between two changes of the rules in the iptables mode; 0 chooses one.")
	fs.BoolVar(&o.masqueradeAll, "masquerade-all", false, "Masquerade all traffic sent to cluster IPs.")
	fs.DurationVar(&c.NFTables.SyncPeriod.Duration, "nftables-sync-period", 30*time.Second, "How often the rules are checked without a change.")
	fs.DurationVar(&c.NFTables.MinSyncPeriod.Duration, "nftables-min-sync-period", 0, "The shortest time between two changes of the rules; 0 chooses one.")
	o.limits.AddFlags(fs, 10)
	featuregates.AddMapFlag(fs, &c.FeatureGates)
	accepted().AddFlags(fs)
}

// accepted are flags that have no effect: changes are watched, requests are protobuf, and the connection tracking table and
// who is killed for want of memory are the machine's matter, not ours.
func accepted() daemon.Accepted {
	return daemon.Accepted{
		Values: []string{
			"config-sync-period", "kube-api-content-type", "conntrack-max-per-core", "conntrack-min", "conntrack-tcp-timeout-established",
			"conntrack-tcp-timeout-close-wait", "conntrack-udp-timeout", "conntrack-udp-timeout-stream", "oom-score-adj",
		},
		Switches: []string{"conntrack-tcp-be-liberal"},
	}
}
