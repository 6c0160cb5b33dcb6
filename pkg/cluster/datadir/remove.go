package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// IsLeftover reports whether dir is what is left of a data directory without a configuration: every entry has a name
// that a cluster writes, at least one is clearly a cluster's, and the directories, except nodes, are for root alone.
// parts are further names that a cluster may write there. It errs on the side of false: what it says yes to is deleted.
func IsLeftover(dir string, parts ...string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(foreign(dir, entries, parts)) > 0 {
		return false
	}
	telling := []string{"pki", "etcd", "nodes", filepath.Base(plan.Layout(dir).Config() + host.NewSuffix)}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool { return slices.Contains(telling, e.Name()) })
}

// CheckNew returns an error if a new cluster must not have its data in dir, because other files are there: once the
// configuration is beside them, Remove deletes them. What is left of a cluster may be there (IsLeftover, with the same
// parts), and lost+found, which every ext4 has.
func CheckNew(dir string, parts ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("--data-dir %s: %w", dir, err)
	}
	others := foreign(dir, entries, append([]string{"lost+found"}, parts...))
	if len(others) == 0 {
		return nil
	}
	names := others[0]
	if len(others) > 1 {
		names += ", …"
	}
	return fmt.Errorf("--data-dir %s: contains files that are not a cluster's (%s), and bonsai down would delete them: "+
		"choose a new or empty directory", dir, names)
}

// foreign returns the names of the entries of dir that a cluster does not write: their name is neither among parts nor
// a cluster's, or they are a directory, other than nodes, that is not for root alone.
func foreign(dir string, entries []os.DirEntry, parts []string) []string {
	l := plan.Layout(dir)
	known := slices.Clone(parts)
	for _, path := range []string{l.Config(), l.Config() + host.NewSuffix, l.Peers(), l.CloudConfig(), l.PKI(""),
		filepath.Dir(l.Encryption()), filepath.Dir(l.Kubeconfig("")), l.At("etcd"), l.At("nodes"),
		filepath.Dir(l.Log("")), l.Run(), l.Snapshots(), l.Traces()} {
		known = append(known, filepath.Base(path))
	}
	var found []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !slices.Contains(known, e.Name()) ||
			info.IsDir() && info.Mode().Perm() != 0o700 && e.Name() != "nodes" {
			found = append(found, e.Name())
		}
	}
	return found
}

// Remove removes a data directory. It empties one that is a mount point, such as a volume: we did not make that. It
// refuses while something is mounted below, whose files are not the cluster's to delete.
func Remove(dir string) error {
	if mounts, err := host.MountsBelow(dir); err != nil || len(mounts) > 0 {
		return errors.Join(err, fmt.Errorf("still mounted: %v", mounts))
	}
	err := os.RemoveAll(dir)
	if errors.Is(err, syscall.EBUSY) && host.IsMountPoint(dir) {
		return nil
	}
	return err
}
