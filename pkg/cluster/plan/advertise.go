package plan

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// joinAddon holds the permissions of bootstrap tokens and joined nodes. Only a joinable cluster has it.
const joinAddon = "join"

// IsJoinable reports whether other machines can join the cluster.
func (c Config) IsJoinable() bool { return c.AdvertiseAddress.IsValid() }

// checkAdvertised returns what is wrong with the advertised address.
func checkAdvertised(c Config) error {
	switch a := c.AdvertiseAddress; {
	case !c.IsJoinable():
		return nil
	case !a.Is4() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast():
		return fmt.Errorf("must be an IPv4 address by which other machines reach this one, not %s", a)
	case c.IPFamily != IPv4:
		return errors.New("nodes on other machines need IPv4 (--ip-family ipv4)")
	case !c.Egress:
		return errors.New("nodes on other machines are reached as all that is outside (--egress)")
	case c.Networks().IsOwn(a):
		return fmt.Errorf("%s is in one of the cluster's own networks", a)
	}
	return nil
}

// Advertised returns the mapping from the API server's port for other machines to that on the node network.
func (c Config) Advertised() PortMapping {
	return PortMapping{Address: c.AdvertiseAddress, HostPort: c.Ports.API, NodePort: c.Ports.API}
}

// AdvertisedServer returns the API server's URL for other machines.
func (c Config) AdvertisedServer() string {
	return "https://" + net.JoinHostPort(c.AdvertiseAddress.String(), strconv.Itoa(c.Ports.API))
}
