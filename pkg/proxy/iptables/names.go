package iptables

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"bonsai/pkg/proxy"
)

// Chains with upstream's names, by which operators' tools know them.
const (
	servicesChain    = "KUBE-SERVICES"
	externalChain    = "KUBE-EXTERNAL-SERVICES"
	nodePortsChain   = "KUBE-NODEPORTS"
	postroutingChain = "KUBE-POSTROUTING"
	markMasqChain    = "KUBE-MARK-MASQ"
	forwardChain     = "KUBE-FORWARD"
	firewallChain    = "KUBE-PROXY-FIREWALL"
	canaryChain      = "KUBE-PROXY-CANARY"
)

// Beginnings of the names of chains that a port or an endpoint has of its own.
const (
	clusterPrefix  = "KUBE-SVC-"
	localPrefix    = "KUBE-SVL-"
	outsidePrefix  = "KUBE-EXT-"
	sourcesPrefix  = "KUBE-FW-"
	endpointPrefix = "KUBE-SEP-"
)

// ownPrefixes are all of those.
var ownPrefixes = [...]string{clusterPrefix, localPrefix, outsidePrefix, sourcesPrefix, endpointPrefix}

// portText names a port of a service in comments and chains' names.
func portText(p *proxy.Port) string {
	text := p.Service.Namespace + "/" + p.Service.Name
	if p.PortName != "" {
		text += ":" + p.PortName
	}
	return text
}

// chain is a name of upstream's form: 16 letters of a hash make it short enough for the kernel.
//
// The kernel allows 28 characters. The hash is the same on every node and in every round, so chains keep their names.
func chain(prefix string, of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(of, "")))
	return prefix + base32.StdEncoding.EncodeToString(sum[:])[:16]
}
