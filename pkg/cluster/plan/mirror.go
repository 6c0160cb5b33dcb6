package plan

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"bonsai/pkg/cluster/plan/localimage"
)

// EveryRegistry is containerd's name for all registries that have no settings of their own.
const EveryRegistry = "_default"

// Mirror is a registry that nodes ask in place of another one.
type Mirror struct {
	// Registry is the one in the names of images, such as docker.io, or EveryRegistry.
	Registry string
	// URL is where the nodes reach the mirror.
	URL string
}

// MirrorAddresses returns the addresses of IPv4, or of IPv6, that the URLs of mirrors have in place of a name. Such a
// mirror may be on this machine, whose rules then must let nodes reach it.
func MirrorAddresses(mirrors []Mirror, six bool) []netip.AddrPort {
	var out []netip.AddrPort
	for _, m := range mirrors {
		u, err := url.Parse(m.URL)
		if err != nil {
			continue // Check has refused it
		}
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		if at, err := netip.ParseAddrPort(net.JoinHostPort(u.Hostname(), port)); err == nil && at.Addr().Is6() == six {
			out = append(out, at)
		}
	}
	return out
}

// Check returns what is wrong with a mirror.
func (m Mirror) Check() error {
	u, err := url.Parse(m.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("must be an http or https URL, not %q", m.URL)
	}
	if m.Registry == localimage.Registry {
		return fmt.Errorf("%q is the registry of the local images, which nodes have already", m.Registry)
	}
	if m.Registry != EveryRegistry {
		if u, err := url.Parse("//" + m.Registry); err != nil || u.Host != m.Registry || m.Registry == "" {
			return fmt.Errorf("%q is not a registry's host, as docker.io", m.Registry)
		}
	}
	return nil
}

// String writes a mirror as REGISTRY=URL.
func (m Mirror) String() string { return m.Registry + "=" + m.URL }
