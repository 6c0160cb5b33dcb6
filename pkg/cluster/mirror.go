package cluster

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// writeMirrors makes the mirrors stand for their registries, and the node's own registry for that of the local images. It returns the
// directories that containerd is to read registries' settings from, in its form; the first that has a registry's tells.
func (n *NodeConfig) writeMirrors() (string, error) {
	dir := layout(n.DataDir).node(n.Name, "etc", "certs.d")
	if err := os.RemoveAll(dir); err != nil { // an earlier life's mirrors
		return "", err
	}
	for _, m := range append(slices.Clone(n.Mirrors), Mirror{Registry: localRegistry, URL: "http://" + localRegistryAddress}) {
		hosts := fmt.Sprintf("server = %[1]q\n[host.%[1]q]\n  capabilities = [\"pull\", \"resolve\"]\n", m.URL)
		if err := writeFile(filepath.Join(dir, m.Registry, "hosts.toml"), []byte(hosts)); err != nil {
			return "", err
		}
	}
	return dir + string(filepath.ListSeparator) + systemRegistries, nil
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
