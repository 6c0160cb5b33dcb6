package machine

import (
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// HasNoResolver reports whether this machine knows no DNS server now, though pods of the cluster may ask its servers.
// `up` only warns about it, since the relay reads the host's file for each question and finds a server that comes
// later.
func HasNoResolver(c plan.Config) bool {
	conf, err := host.ReadResolvConf(host.HostResolvConf)
	return c.Egress && c.Joined == nil && err == nil && len(conf.Servers) == 0
}
