package plan

import (
	"net/netip"
	"slices"
)

// The registry add-on: a Service of a fixed address, whose node port is published on the host. Images are called by
// what they are pushed
// to, and nodes are told that registryHost is that Service.
const (
	registryAddon    = "registry"
	RegistryHost     = "localhost:5001"
	registryHostPort = 5001
	registryPort     = 5000
	// registryNodePort is of the part of the range from which none is given to Services that ask for any.
	RegistryNodePort = 30050
)

// mappings are the node ports that the cluster publishes on the host: the registry's and the user's.
func (c Config) Mappings() []PortMapping {
	if !c.HasAddon(registryAddon) {
		return c.PortMappings
	}
	own := PortMapping{Address: netip.MustParseAddr(Loopback), HostPort: registryHostPort, NodePort: RegistryNodePort}
	return append([]PortMapping{own}, c.PortMappings...)
}

// mirrors are what the nodes ask instead of the registries that images name: the user's, and the cluster's own for
// registryHost.
func (c Config) RegistryMirrors() []Mirror {
	if !c.HasAddon(registryAddon) {
		return c.Mirrors
	}
	return append(slices.Clone(c.Mirrors),
		Mirror{Registry: RegistryHost, URL: "http://" + c.Networks().RegistryAddress()})
}
