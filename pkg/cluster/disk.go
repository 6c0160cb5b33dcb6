package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What a start needs below the data directory, in bytes: etcd, which allocates its log ahead, and logs; and per new node the
// unpacked local images.
const (
	clusterSpace = 256 << 20
	nodeSpace    = 256 << 20
)

// runningSpace is what a cluster that runs needs, in bytes: etcd's next piece of its log.
const runningSpace = 64 << 20

// A node takes no pods while its file system has less than this much free, in percent (kubelet's hard eviction thresholds).
const (
	leastSpace  = 3
	leastInodes = 1
)

// checkDisk tells at once whether the data directory can be written and has the room that a start needs.
func (c Config) checkDisk() error {
	dir := existing(c.DataDir)
	if err := tryWriting(dir); err != nil {
		return fmt.Errorf("--data-dir %s cannot be written: %w", c.DataDir, err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("--data-dir %s: ask for its free space: %w", c.DataDir, err)
	}
	need := uint64(clusterSpace)
	for _, node := range c.Nodes {
		if _, err := os.Stat(c.layout().node(node.Name(), "lib")); err != nil {
			need += nodeSpace
		}
	}
	if err := enoughSpace(&fs, need); err != nil {
		return fmt.Errorf("--data-dir %s: %w", c.DataDir, err)
	}
	return nil
}

// existing returns path, or the nearest directory above that will hold it.
func existing(path string) string {
	for ; path != "/"; path = filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
	}
	return path
}

// spaceLeft tells whether a cluster that runs has the room to go on. The error names the data directory.
func (c Config) spaceLeft() error {
	var fs unix.Statfs_t
	err := unix.Statfs(c.DataDir, &fs)
	if err == nil {
		err = enoughSpace(&fs, runningSpace)
	}
	if err != nil {
		return fmt.Errorf("the disk of %s: %w", c.DataDir, err)
	}
	return nil
}

// enoughSpace compares a file system's free space with what is needed.
func enoughSpace(fs *unix.Statfs_t, need uint64) error {
	free := fs.Bavail * uint64(fs.Bsize)
	switch {
	case free < need:
		return fmt.Errorf("%w: %d MiB are free, %d MiB are needed", unix.ENOSPC, free>>20, need>>20)
	case fs.Bavail*100 < fs.Blocks*leastSpace:
		return fmt.Errorf("%w: less than %d%% of the file system is free, so that nodes would take no pods", unix.ENOSPC, leastSpace)
	case fs.Ffree*100 < fs.Files*leastInodes:
		return fmt.Errorf("%w: less than %d%% of the file system's inodes are free, so that nodes would take no pods", unix.ENOSPC, leastInodes)
	}
	return nil
}

// tryWriting writes a small file to the disk and removes it.
func tryWriting(dir string) error {
	f, err := os.CreateTemp(dir, ".bonsai-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	if err == nil {
		err = f.Sync() // some file systems find out only now
	}
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}
