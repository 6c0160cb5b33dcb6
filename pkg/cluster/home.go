package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

// Home is the directory below which clusters have their data unless the user says otherwise.
type Home string

// DefaultHome is the usual one.
const DefaultHome Home = "/var/lib"

// DataDir is where the cluster of that name has its data.
func (h Home) DataDir(name string) string {
	if name == plan.DefaultName {
		return filepath.Join(string(h), plan.DefaultName)
	}
	return filepath.Join(string(h), "bonsai-clusters", name)
}

// Clusters returns the clusters of this machine, running or stopped, by their data directories: those in their usual
// places, those whose link is on the host, and those that the user's kubeconfig has a context of, if it can be read. Of
// one whose configuration cannot be read, only DataDir is set.
func (h Home) Clusters() ([]plan.Config, error) {
	dirs := map[string]bool{h.DataDir(plan.DefaultName): true}
	named, err := filepath.Glob(h.DataDir("*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range named {
		dirs[dir] = true
	}
	links, err := netdump.Links()
	if err != nil {
		return nil, fmt.Errorf("list the links: %w", err)
	}
	for _, l := range links {
		if plan.MarkIn(l.Attrs().Name) != "" && filepath.IsAbs(l.Attrs().Alias) {
			dirs[l.Attrs().Alias] = true
		}
	}
	k, err := kubeconfig.User()
	// what is wrong with it is said by whoever needs it (machine, PrintList); the clusters are there all the same
	if err != nil {
		k = clientcmdapi.NewConfig()
	}
	for _, context := range k.Contexts {
		if dir := kubeconfig.OwnerOf(context); filepath.IsAbs(dir) {
			dirs[dir] = true
		}
	}
	var found []plan.Config
	seen := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		dir, err := ResolveDataDir(dir)
		if err != nil || seen[dir] {
			continue
		}
		seen[dir] = true
		c, err := Load(dir)
		switch {
		case err == nil:
			found = append(found, c)
		case !errors.Is(err, os.ErrNotExist) || leftSomething(plan.Config{DataDir: dir}):
			found = append(found, plan.Config{DataDir: dir})
		}
	}
	return found, nil
}

// Find returns the data directory of the cluster of that name: its usual place, unless the cluster of that name is
// elsewhere.
func (h Home) Find(name string) (string, error) {
	usual, err := ResolveDataDir(h.DataDir(name))
	if err != nil {
		return "", err
	}
	all, err := h.Clusters()
	if err != nil {
		return "", err
	}
	found := ""
	for _, c := range all {
		switch {
		case c.DataDir == usual:
			return usual, nil
		case c.Name != name:
		case found != "":
			return "", fmt.Errorf("there are two clusters called %s, in %s and %s: say which with --data-dir", name,
				found, c.DataDir)
		default:
			found = c.DataDir
		}
	}
	if found == "" {
		found = usual
	}
	return found, nil
}

// ResolveDataDir returns the one path of a data directory, existing or not: absolute paths are cleaned, and links in
// the part that exists are followed, since who owns what follows from the path.
func ResolveDataDir(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return path, nil // Validate refuses it
	}
	rest := ""
	for existing := filepath.Clean(path); ; existing, rest = filepath.Dir(existing),
		filepath.Join(filepath.Base(existing), rest) {
		resolved, err := filepath.EvalSymlinks(existing)
		if err == nil {
			return filepath.Join(resolved, rest), nil
		}
		if !os.IsNotExist(err) || existing == "/" {
			return "", fmt.Errorf("--data-dir %s: %w", path, err)
		}
	}
}
