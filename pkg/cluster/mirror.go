package cluster

import (
	"fmt"
	"net/url"
)

// systemRegistries is where containerd looks for the user's registry settings (its documented place).
const systemRegistries = "/etc/containerd/certs.d"

// writeMirror makes the mirror, if there is one, stand for every registry, and returns the directory that containerd is to
// read registries' settings from.
func (n *NodeConfig) writeMirror() (string, error) {
	if n.RegistryMirror == "" {
		return systemRegistries, nil
	}
	l := layout(n.DataDir)
	hosts := fmt.Sprintf("server = %q\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", n.RegistryMirror, n.RegistryMirror)
	return l.node(n.Name, "etc", "certs.d"), writeFile(l.node(n.Name, "etc", "certs.d", "_default", "hosts.toml"), []byte(hosts))
}

// checkMirror returns what is wrong with a mirror's address; none is fine.
func checkMirror(mirror string) error {
	if mirror == "" {
		return nil
	}
	u, err := url.Parse(mirror)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--registry-mirror: must be an http or https URL, not %q", mirror)
	}
	return nil
}
