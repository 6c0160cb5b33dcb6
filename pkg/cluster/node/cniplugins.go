package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/programs"
)

const (
	// cniBinDir is where a node's container runtime looks for CNI plug-ins: the default of all runtimes, where add-ons
	// that bring a network of their own install theirs.
	cniBinDir = "/opt/cni/bin"
	// IPAMPlugin is our own plug-in, which gives out addresses.
	IPAMPlugin = "bonsai-ipam"
)

// machinePlugins are where distributions have the plug-ins: Debian and Arch, then Fedora and Alpine.
var machinePlugins = [...]string{"/usr/lib/cni", "/usr/libexec/cni"}

// PluginDir returns the first directory with CNI plug-ins: the bundled ones, unless the machine's are wanted, or the
// machine's. If there is none, it is where most distributions have them.
func PluginDir(binDir, choice string) string {
	var dirs []string
	if choice != programs.Machine {
		dirs = append(dirs, filepath.Join(programs.Dir(binDir), "cni"))
	}
	for _, dir := range append(dirs, machinePlugins[:]...) {
		if host.IsExecutable(filepath.Join(dir, "bridge")) { // it stands for all of them
			return dir
		}
	}
	return machinePlugins[0]
}

// linkPlugins makes links in dir to the system's CNI plug-ins and to ours. It leaves files that are not links: an
// add-on has put them there. It runs at each start of the node. A link to a plug-in that the system has lost stays, and
// leads nowhere.
func (n *Config) linkPlugins(dir, system string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	found, err := os.ReadDir(system)
	if err != nil {
		return fmt.Errorf("look for the CNI plug-ins: %w", err)
	}
	targets := []string{filepath.Join(n.BinDir, IPAMPlugin)}
	for _, f := range found {
		targets = append(targets, filepath.Join(system, f.Name()))
	}
	for _, target := range targets {
		link := filepath.Join(dir, filepath.Base(target))
		info, err := os.Lstat(link)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case info.Mode()&fs.ModeSymlink == 0:
			continue
		}
		if err := host.MakeLink(target, link); err != nil {
			return err
		}
	}
	return nil
}
