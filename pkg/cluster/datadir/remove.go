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
	if err != nil || len(entries) == 0 {
		return false
	}
	l := plan.Layout(dir)
	known := slices.Clone(parts)
	for _, path := range []string{l.Config(), l.Config() + host.NewSuffix, l.Peers(), l.CloudConfig(), l.PKI(""),
		filepath.Dir(l.Encryption()), filepath.Dir(l.Kubeconfig("")), l.At("etcd"), l.At("nodes"),
		filepath.Dir(l.Log("")), l.Run(), l.Snapshots(), l.Traces()} {
		known = append(known, filepath.Base(path))
	}
	telling := false
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !slices.Contains(known, e.Name()) ||
			info.IsDir() && info.Mode().Perm() != 0o700 && e.Name() != "nodes" {
			return false
		}
		telling = telling || slices.Contains(
			[]string{"pki", "etcd", "nodes", filepath.Base(l.Config() + host.NewSuffix)}, e.Name())
	}
	return telling
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
