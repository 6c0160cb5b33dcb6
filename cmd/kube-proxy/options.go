package main

import (
	"time"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
)

// options are the flags, with upstream's names. A flag that is given wins over the configuration file.
type options struct {
	logging    daemon.Logging
	configFile string
	cleanup    bool
	flags      configuration
}

// addFlags registers the flags with their defaults.
func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	c := &o.flags
	fs.StringVar(&o.configFile, "config", "", "The path to the configuration file (kubeproxy.config.k8s.io/v1alpha1).")
	fs.BoolVar(&o.cleanup, "cleanup", false, "If true remove the proxy's nftables tables and routes and exit.")
	fs.StringVar(&c.ClientConnection.Kubeconfig, "kubeconfig", "", "Path to kubeconfig file with authorization information.")
	fs.StringVar(&c.HostnameOverride, "hostname-override", "", "If non-empty, will be used as the name of the node that kube-proxy is running on.")
	fs.StringVar(&c.BindAddress, "bind-address", "0.0.0.0", "The node's primary address, if it is not the one that the node object has.")
	fs.StringVar(&c.HealthzBindAddress, "healthz-bind-address", "0.0.0.0:10256", `The address and port of the health server; "" serves none.`)
	fs.StringVar(&c.MetricsBindAddress, "metrics-bind-address", "127.0.0.1:10249", `The address and port of the metrics server; "" serves none.`)
	fs.StringVar(&c.Mode, "proxy-mode", "nftables", "Which proxy mode to use: 'nftables'.")
	fs.StringVar(&c.ClusterCIDR, "cluster-cidr", "", "The CIDR range of the pods in the cluster; traffic to cluster IPs from elsewhere is masqueraded. One per family.")
	fs.StringSliceVar(&c.NodePortAddresses, "nodeport-addresses", nil, `CIDR ranges of the node's addresses that take NodePort connections, or "primary" (the default).`)
	fs.StringSliceVar(&c.ServiceCIDRs, "service-cluster-ip-range", nil, "CIDR ranges of cluster IPs; what no service has is refused on the node, and no service gets one as an external address.")
	fs.BoolVar(&c.NFTables.MasqueradeAll, "masquerade-all", false, "Masquerade all traffic sent to cluster IPs.")
	fs.DurationVar(&c.NFTables.SyncPeriod.Duration, "nftables-sync-period", 30*time.Second, "How often the rules are checked without a change.")
	fs.DurationVar(&c.NFTables.MinSyncPeriod.Duration, "nftables-min-sync-period", 0, "The shortest time between two changes of the rules; 0 chooses one.")
	fs.DurationVar(&c.ConfigSyncPeriod.Duration, "config-sync-period", 15*time.Minute, "Accepted for compatibility: changes are watched.")
	fs.Float32Var(&c.ClientConnection.QPS, "kube-api-qps", 5, "Accepted for compatibility: the API server limits requests.")
	fs.Int32Var(&c.ClientConnection.Burst, "kube-api-burst", 10, "Accepted for compatibility: the API server limits requests.")
	fs.StringVar(&c.ClientConnection.ContentType, "kube-api-content-type", "application/vnd.kubernetes.protobuf", "Accepted for compatibility: requests are protobuf.")
	conntrackFlags(fs, &c.Conntrack)
}

// conntrackFlags registers the settings of the connection tracking table, which belong to the machine, not to us: only zeros
// ("leave it alone") need no sysctl.
func conntrackFlags(fs *pflag.FlagSet, c *conntrackConfiguration) {
	fs.Int32Var(&c.MaxPerCore, "conntrack-max-per-core", 0, "Accepted for compatibility: the kernel's limit is left as it is.")
	fs.Int32Var(&c.Min, "conntrack-min", 0, "Accepted for compatibility: the kernel's limit is left as it is.")
	fs.BoolVar(&c.TCPBeLiberal, "conntrack-tcp-be-liberal", false, "Accepted for compatibility: the kernel's setting is left as it is.")
	fs.DurationVar(&c.TCPEstablishedTimeout.Duration, "conntrack-tcp-timeout-established", 0, "Accepted for compatibility: the kernel's timeout is left as it is.")
	fs.DurationVar(&c.TCPCloseWaitTimeout.Duration, "conntrack-tcp-timeout-close-wait", 0, "Accepted for compatibility: the kernel's timeout is left as it is.")
	fs.DurationVar(&c.UDPTimeout.Duration, "conntrack-udp-timeout", 0, "Accepted for compatibility: the kernel's timeout is left as it is.")
	fs.DurationVar(&c.UDPStreamTimeout.Duration, "conntrack-udp-timeout-stream", 0, "Accepted for compatibility: the kernel's timeout is left as it is.")
}
