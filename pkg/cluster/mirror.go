package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"bonsai/pkg/cluster/host"
)

// systemRegistries is where containerd looks for the user's registry settings (its documented place).
const systemRegistries = "/etc/containerd/certs.d"

// EveryRegistry is containerd's name for all registries that have no settings of their own.
const EveryRegistry = "_default"

// Mirror is a registry that is asked instead of another one.
type Mirror struct {
	// Registry is the one that images name, as docker.io, or EveryRegistry.
	Registry string
	// URL is where the nodes reach the one that is asked.
	URL string
}

// hostMirrors are the addresses of one family that the mirrors name as such: they may be this machine's, where its own rules decide.
func (c Config) hostMirrors(six bool) []netip.AddrPort {
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

// writeMirrors makes the mirrors stand for their registries, and the node's own registry for that of the local images. It returns the
// directory that containerd is to read registries' settings from: one, as containerd 2 takes no list. Without mirrors the machine's settings of
// other registries hold, too.
func (n *NodeConfig) writeMirrors() (string, error) {
	dir := layout(n.DataDir).node(n.Name, "etc", "certs.d")
	if err := os.RemoveAll(dir); err != nil { // an earlier life's mirrors
		return "", err
	}
	for _, m := range append(slices.Clone(n.Mirrors), Mirror{Registry: localRegistry, URL: "http://" + localRegistryAddress}) {
		hosts := fmt.Sprintf("server = %[1]q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", m.URL)
		if err := host.WriteFile(filepath.Join(dir, m.Registry, "hosts.toml"), []byte(hosts)); err != nil {
			return "", err
		}
	}
	if len(n.Mirrors) > 0 {
		return dir, nil
	}
	system, err := os.ReadDir(systemRegistries)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for _, registry := range system {
		err := os.Symlink(filepath.Join(systemRegistries, registry.Name()), filepath.Join(dir, registry.Name()))
		if err != nil && !errors.Is(err, os.ErrExist) { // what the node has already is the cluster's
			return "", err
		}
	}
	return dir, nil
}

// check returns what is wrong with a mirror.
func (m Mirror) check() error {
	u, err := url.Parse(m.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("must be an http or https URL, not %q", m.URL)
	}
	if m.Registry == localRegistry {
		return fmt.Errorf("%q is the registry of the local images, which nodes have already", m.Registry)
	}
	if m.Registry != EveryRegistry {
		if u, err := url.Parse("//" + m.Registry); err != nil || u.Host != m.Registry || m.Registry == "" {
			return fmt.Errorf("%q is not a registry's host, as docker.io", m.Registry)
		}
	}
	return nil
}
