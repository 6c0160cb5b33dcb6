package nft

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"strconv"
	"strings"

	"bonsai/pkg/proxy"
)

// maxName is the longest chain and set name used; the kernel takes 127 bytes, the tool's version 1.0.6 is happy with this.
const maxName = 110

// chainName is "<kind>-<hash>-<namespace>/<service>/<protocol>/<port>": the hash makes it unique, the rest is for readers.
func chainName(kind string, p *proxy.Port) string {
	return unique(kind, serviceText(p))
}

// endpointName is the chain of one endpoint of a port.
func endpointName(p *proxy.Port, e netip.AddrPort) string {
	return unique("endpoint", serviceText(p)+"__"+e.Addr().String()+"/"+strconv.Itoa(int(e.Port())))
}

// affinityName is the set of clients that stay with an endpoint. The timeout is part of it, since a set's cannot change.
func affinityName(p *proxy.Port, e netip.AddrPort) string {
	return unique("affinity", serviceText(p)+"__"+e.Addr().String()+"/"+strconv.Itoa(int(e.Port()))+"/"+strconv.Itoa(int(p.AffinitySeconds)))
}

func serviceText(p *proxy.Port) string {
	return p.Service.Namespace + "/" + p.Service.Name + "/" + strings.ToLower(string(p.Protocol)) + "/" + p.PortName
}

func unique(kind, text string) string {
	sum := sha256.Sum256([]byte(text))
	name := kind + "-" + base32.StdEncoding.EncodeToString(sum[:])[:8] + "-" + strings.ReplaceAll(text, ":", ".")
	return name[:min(len(name), maxName)]
}
