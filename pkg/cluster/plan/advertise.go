package plan

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation"
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

// checkEndpoint returns what is wrong with the user's own name or balancer before the API servers.
func checkEndpoint(c Config) error {
	if c.ControlPlaneEndpoint == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(c.ControlPlaneEndpoint)
	number, portErr := strconv.ParseUint(port, 10, 16)
	_, ipErr := netip.ParseAddr(host)
	switch {
	case err != nil || portErr != nil || number == 0:
		return fmt.Errorf("must be HOST:PORT, not %q", c.ControlPlaneEndpoint)
	case ipErr != nil && len(validation.IsDNS1123Subdomain(host)) > 0:
		return fmt.Errorf("%q is neither an IP address nor a DNS name", host)
	case !c.IsJoinable():
		return errors.New("other machines need --advertise-address, too")
	}
	return nil
}

// Endpoint returns the host and port by which other machines find the cluster: the user's own, if there is one.
func Endpoint(c Config) string {
	if c.ControlPlaneEndpoint != "" {
		return c.ControlPlaneEndpoint
	}
	return c.Advertised().Listens().String()
}

// Advertised returns the mapping from the API server's port for other machines to that on the node network.
func (c Config) Advertised() PortMapping {
	return PortMapping{Address: c.AdvertiseAddress, HostPort: c.Ports.API, NodePort: c.Ports.API}
}

// AdvertisedServer returns the API server's URL for other machines.
func (c Config) AdvertisedServer() string { return "https://" + Endpoint(c) }
