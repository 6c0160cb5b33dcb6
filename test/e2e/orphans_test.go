package e2e

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
)

// alone makes this run the only one in its network namespace until the listener is closed or the process ends, however
// that comes: an abstract socket is its namespace's, and nobody's once its process is gone.
func alone() (net.Listener, error) {
	l, err := net.Listen("unix", "@bonsai-e2e")
	if err != nil {
		return nil, fmt.Errorf("another run of these tests goes on: %w", err)
	}
	return l, nil
}

// ofTests is what a data directory is called that a run of these tests made, beneath the directory for temporary files.
var ofTests = regexp.MustCompile(`^(bonsai-e2e-|Test[A-Z])`)

// takeDownOrphans takes down the clusters of runs that were killed, which had no time to do it. To be called when
// alone: a cluster that has no run any more is told by its data directory, which its link bears as an alias.
func takeDownOrphans() error {
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, l := range links {
		data := l.Attrs().Alias
		if rel, err := filepath.Rel(os.TempDir(), data); data == "" || err != nil || !ofTests.MatchString(rel) {
			continue
		}
		out, err := cluster.command(2*time.Minute, "bonsai", "--data-dir", data, "down")
		if err != nil {
			return fmt.Errorf("the cluster of a run that was killed: %w", err)
		}
		fmt.Printf("took down the cluster of a run that was killed (%s):\n%s", data, out)
	}
	return removeEmptyCgroups()
}

// removeEmptyCgroups removes the cgroups of clusters without any process: with its network namespace a cluster can lose
// its links and every process, but not these.
func removeEmptyCgroups() error {
	roots, err := cgroupsCalled("bonsai-*")
	if err != nil {
		return err
	}
	for _, root := range roots {
		var groups []string
		processes := 0
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return err
			}
			groups = append(groups, path)
			procs, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			processes += len(procs)
			return err
		})
		if err != nil {
			return err
		}
		if processes > 0 {
			continue
		}
		for _, g := range slices.Backward(groups) { // children first
			if err := os.Remove(g); err != nil {
				return err
			}
		}
		fmt.Println("removed an empty cgroup of a run that was killed:", root)
	}
	return nil
}
