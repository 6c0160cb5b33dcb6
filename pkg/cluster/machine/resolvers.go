package machine

import (
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// HasNoResolver reports whether this machine knows no DNS server now, though pods of the cluster may ask its servers.
func HasNoResolver(c plan.Config) bool {
	conf, err := host.ReadResolvConf(host.HostResolvConf)
	return c.Egress && c.Joined == nil && err == nil && len(conf.Servers) == 0
}
