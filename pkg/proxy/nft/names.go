package nft

import (
	"net/netip"
	"strconv"
	"strings"

	"bonsai/pkg/nftables"
	"bonsai/pkg/proxy"
)

// chainName is "<kind>-<hash>-<namespace>/<service>/<protocol>/<port>": the hash makes it unique, the rest is for
// readers.
func chainName(kind string, p *proxy.Port) string {
	return nftables.Unique(kind, serviceText(p))
}

// endpointName is the chain of one endpoint of a port.
func endpointName(p *proxy.Port, e netip.AddrPort) string {
	return nftables.Unique("endpoint", serviceText(p)+"__"+e.Addr().String()+"/"+strconv.Itoa(int(e.Port())))
}

// affinityName is the set of clients that stay with an endpoint. The timeout is part of it, since a set's cannot
// change.
func affinityName(p *proxy.Port, e netip.AddrPort) string {
	return nftables.Unique("affinity",
		serviceText(p)+"__"+e.Addr().String()+"/"+strconv.Itoa(int(e.Port()))+"/"+strconv.Itoa(int(p.AffinitySeconds)))
}

func serviceText(p *proxy.Port) string {
	return p.Service.Namespace + "/" + p.Service.Name + "/" + strings.ToLower(string(p.Protocol)) + "/" + p.PortName
}
