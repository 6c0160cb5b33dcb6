package machine

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// A start needs this much below the data directory, in bytes: clusterSpace for etcd, which allocates its log in
// advance, and for logs; nodeSpace for the unpacked local images of each new node.
const (
	clusterSpace = 256 << 20
	nodeSpace    = 256 << 20
)

// runningSpace is what a running cluster needs, in bytes: the next segment of etcd's log.
const runningSpace = 64 << 20

// CheckSpace returns an error unless the data directory can be written and has the room that a start needs. Nodes that
// have started before have unpacked their images. It is a look and no reservation: another program may fill the disk a
// moment later. WatchSpace looks on while a start waits.
func CheckSpace(c plan.Config) error {
	dir := host.Existing(c.DataDir)
	if err := host.TryWriting(dir); err != nil {
		return fmt.Errorf("--data-dir %s cannot be written: %w", c.DataDir, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("--data-dir %s: ask for its free space: %w", c.DataDir, err)
	}
	need := uint64(clusterSpace)
	for _, node := range c.Nodes {
		if _, err := os.Stat(c.Layout().Node(node.Name(), "lib")); err != nil {
			need += nodeSpace
		}
	}
	if err := host.EnoughSpace(&fs, need); err != nil {
		return fmt.Errorf("--data-dir %s: %w", c.DataDir, err)
	}
	return nil
}

// CheckRunningSpace returns an error, which names the data directory, unless a running cluster has the room to go on.
func CheckRunningSpace(c plan.Config) error {
	var fs unix.Statfs_t
	err := unix.Statfs(c.DataDir, &fs)
	if err == nil {
		err = host.EnoughSpace(&fs, runningSpace)
	}
	if err != nil {
		return fmt.Errorf("the disk of %s: %w", c.DataDir, err)
	}
	return nil
}
