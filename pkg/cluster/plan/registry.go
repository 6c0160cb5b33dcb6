package plan

import (
	"net/netip"
	"slices"
)

// The registry add-on is a Service with a fixed address, whose node port is published on the host. The name of an image
// contains the address that it was pushed to, RegistryHost, and the nodes have the Service as the mirror of that.
const (
	registryAddon    = "registry"
	RegistryHost     = "localhost:5001"
	registryHostPort = 5001
	registryPort     = 5000
	// RegistryNodePort is in the part of the range that Services do not get if they leave the port open.
	RegistryNodePort = 30050
)

// Mappings returns the node ports that the cluster publishes on the host: the registry's first, then the user's. A
// machine that has joined publishes none.
func (c Config) Mappings() []PortMapping {
	if c.Joined != nil || !c.HasAddon(registryAddon) {
		return c.PortMappings
	}
	own := PortMapping{Address: netip.MustParseAddr(Loopback), HostPort: registryHostPort, NodePort: RegistryNodePort}
	return append([]PortMapping{own}, c.PortMappings...)
}

// RegistryMirrors returns the mirrors that nodes use: the user's, and the cluster's own registry for RegistryHost.
func (c Config) RegistryMirrors() []Mirror {
	if !c.HasAddon(registryAddon) {
		return c.Mirrors
	}
	return append(slices.Clone(c.Mirrors),
		Mirror{Registry: RegistryHost, URL: "http://" + c.Networks().RegistryAddress()})
}
