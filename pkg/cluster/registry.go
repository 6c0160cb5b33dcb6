package cluster

import (
	"net/netip"
	"slices"
)

// The registry add-on: a Service of a fixed address, whose node port is published on the host. Images are called by what they are pushed
// to, and nodes are told that registryHost is that Service.
const (
	registryAddon    = "registry"
	registryHost     = "localhost:5001"
	registryHostPort = 5001
	registryPort     = 5000
	// registryNodePort is of the part of the range from which none is given to Services that ask for any.
	registryNodePort = 30050
)

// registryIP is the address of the registry's Service.
func (c Config) registryIP() netip.Addr { return nth(c.ServiceSubnets()[0], 11) }

// registryAddress is where nodes and pods reach the registry.
func (c Config) registryAddress() string {
	return netip.AddrPortFrom(c.registryIP(), registryPort).String()
}

// mappings are the node ports that the cluster publishes on the host: the registry's and the user's.
func (c Config) mappings() []PortMapping {
	if !c.hasAddon(registryAddon) {
		return c.PortMappings
	}
	own := PortMapping{Address: netip.MustParseAddr(loopback), HostPort: registryHostPort, NodePort: registryNodePort}
	return append([]PortMapping{own}, c.PortMappings...)
}

// mirrors are what the nodes ask instead of the registries that images name: the user's, and the cluster's own for registryHost.
func (c Config) mirrors() []Mirror {
	if !c.hasAddon(registryAddon) {
		return c.Mirrors
	}
	return append(slices.Clone(c.Mirrors), Mirror{Registry: registryHost, URL: "http://" + c.registryAddress()})
}
