package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/localimage"
)

// systemRegistries is where containerd looks for the user's registry settings (its documented place).
const systemRegistries = "/etc/containerd/certs.d"

// writeMirrors configures the mirrors for their registries, and the node's own registry for that of the local images.
// It returns the directory with containerd's settings of registries: only one, because containerd 2 takes no list. If
// the cluster has no mirrors, the machine's settings for other registries apply, too.
func (n *Config) writeMirrors() (string, error) {
	dir := plan.Layout(n.DataDir).Node(n.Name, "etc", "certs.d")
	// What an earlier configuration left goes, links above all: a file that is written below one would be the
	// machine's. containerd reads these files at each pull, and so may run.
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	// Each directory is named after its registry, as containerd's documentation of hosts.toml prescribes. The local
	// registry comes last, so its file replaces that of a mirror for the same name.
	for _, m := range append(slices.Clone(n.Mirrors),
		plan.Mirror{Registry: localimage.Registry, URL: "http://" + localimage.RegistryAddress}) {
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
