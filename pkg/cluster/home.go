package cluster

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"bonsai/pkg/netdump"
)

// Home is the directory below which clusters have their data unless the user says otherwise.
type Home string

// DefaultHome is the usual one.
const DefaultHome Home = "/var/lib"

// DataDir is where the cluster of that name has its data.
func (h Home) DataDir(name string) string {
	if name == DefaultName {
		return filepath.Join(string(h), DefaultName)
	}
	return filepath.Join(string(h), "bonsai-clusters", name)
}

// Clusters returns the clusters of this machine, running or stopped, by their data directories: those in their usual places, those
// whose link is on the host, and those that the user's kubeconfig has a context of, if it can be read. Of one whose
// configuration cannot be read, only DataDir is set.
func (h Home) Clusters() ([]Config, error) {
	dirs := map[string]bool{h.DataDir(DefaultName): true}
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
		if markIn(l.Attrs().Name) != "" && filepath.IsAbs(l.Attrs().Alias) {
			dirs[l.Attrs().Alias] = true
		}
	}
	k, err := userKubeconfig()
	if err != nil { // what is wrong with it is said by whoever needs it (machine, PrintList); the clusters are there all the same
		k = clientcmdapi.NewConfig()
	}
	for _, context := range k.Contexts {
		if dir := contextOwner(context); filepath.IsAbs(dir) {
			dirs[dir] = true
		}
	}
	var found []Config
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
		case !errors.Is(err, os.ErrNotExist) || (Config{DataDir: dir}).leftSomething():
			found = append(found, Config{DataDir: dir})
		}
	}
	return found, nil
}

// Find returns the data directory of the cluster of that name: its usual place, unless the cluster of that name is elsewhere.
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
			return "", fmt.Errorf("there are two clusters called %s, in %s and %s: say which with --data-dir", name, found, c.DataDir)
		default:
			found = c.DataDir
		}
	}
	if found == "" {
		found = usual
	}
	return found, nil
}
