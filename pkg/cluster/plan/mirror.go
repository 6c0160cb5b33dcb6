package plan

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
)

// EveryRegistry is containerd's name for all registries that have no settings of their own.
const EveryRegistry = "_default"

// Mirror is a registry that is asked instead of another one.
type Mirror struct {
	// Registry is the one that images name, as docker.io, or EveryRegistry.
	Registry string
	// URL is where the nodes reach the one that is asked.
	URL string
}

// hostMirrors are the addresses of one family that the mirrors name as such: they may be this machine's, where its
// own rules decide.
func (c Config) HostMirrors(six bool) []netip.AddrPort {
	var out []netip.AddrPort
	for _, m := range c.Mirrors {
		u, err := url.Parse(m.URL)
		if err != nil {
			continue // checked where the user names it
		}
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		if at, err := netip.ParseAddrPort(net.JoinHostPort(u.Hostname(), port)); err == nil && at.Addr().Is6() == six {
			out = append(out, at)
		}
	}
	return out
}

// check returns what is wrong with a mirror.
func (m Mirror) check() error {
	u, err := url.Parse(m.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("must be an http or https URL, not %q", m.URL)
	}
	if m.Registry == LocalRegistry {
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

// The local images' registry as their names have it, and where a node's containerd asks for it: in the node itself.
// It has a loopback
// address to itself, so that no pod on the node's network is in its way, and a port that is root's, so that no user
// of a machine that
// joined a cluster can give it other images.
const (
	LocalRegistry        = "localhost"
	LocalRegistryAddress = "127.0.0.2:1011"
)
