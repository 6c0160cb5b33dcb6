package machine

import (
	"fmt"
	"net/netip"
	"slices"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/plan"
)

// ForeignAddresses has an error for each address that the cluster is to listen at and that is not this machine's.
// Unspecified and loopback addresses count as this machine's without a look. In a user's own namespaces, the start
// finds out when it listens.
func ForeignAddresses(c plan.Config) []error {
	if door.IsInside() {
		return nil
	}
	has, err := host.Addresses()
	if err != nil {
		return []error{err}
	}
	wanted := map[string]netip.Addr{"--advertise-address": c.AdvertiseAddress}
	for _, m := range c.PortMappings {
		wanted["the port mapping of "+m.Listens().String()] = m.Address
	}
	var foreign []error
	for by, ip := range wanted {
		// the cluster adds the addresses of its node subnet itself
		if ip.IsValid() && !ip.IsUnspecified() && !ip.IsLoopback() && !c.NodeSubnet.Contains(ip) &&
			!slices.Contains(has, ip.Unmap()) {
			foreign = append(foreign, fmt.Errorf("%s: %s is no address of this machine", by, ip))
		}
	}
	return foreign
}
