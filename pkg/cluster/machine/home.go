package machine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/netdump"
)

// Home is the directory below which clusters have their data unless the user chooses another place.
type Home string

// DefaultHome is the home of a user who sets none.
const DefaultHome Home = "/var/lib"

// DataDir returns the usual place of a cluster's data. Named clusters are in a directory of their own, so that no name
// can collide with another program's directory.
func (h Home) DataDir(name string) string {
	if name == plan.DefaultName {
		return filepath.Join(string(h), plan.DefaultName)
	}
	return filepath.Join(string(h), "bonsai-clusters", name)
}

// Clusters returns the clusters of this machine, running or stopped, in the order of their data directories: those in
// their usual places, those whose link is on the host, and those in the directories elsewhere that exist or have left
// something on the host. If a configuration cannot be read, only its DataDir is set.
//
// It takes no lock and changes nothing, so a cluster that begins or ends meanwhile may be in the list or not.
func (h Home) Clusters(elsewhere []string) ([]plan.Config, error) {
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
	for _, dir := range elsewhere {
		if filepath.IsAbs(dir) {
			dirs[dir] = true
		}
	}
	var found []plan.Config
	seen := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		dir, err := datadir.Resolve(dir)
		if err != nil || seen[dir] {
			continue
		}
		seen[dir] = true
		c, err := datadir.Load(dir)
		switch {
		case err == nil:
			found = append(found, c)
		case !errors.Is(err, os.ErrNotExist) || HasMarked(plan.Config{DataDir: dir}.Mark()):
			found = append(found, plan.Config{DataDir: dir})
		}
	}
	return found, nil
}

// Find returns the data directory of the cluster of that name among all (Clusters), or its usual place if there is
// none.
func (h Home) Find(name string, all []plan.Config) (string, error) {
	usual, err := datadir.Resolve(h.DataDir(name))
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
