package host

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// A node takes no pods while its file system has less than this much free, in percent: the kubelet's hard eviction
// thresholds.
const (
	LeastSpace  = 3
	LeastInodes = 1
)

// EnoughSpace returns an error that wraps ENOSPC if a file system has less free space than need, in bytes, or so
// little of its space or inodes that nodes on it would take no pods.
func EnoughSpace(fs *unix.Statfs_t, need uint64) error {
	free := fs.Bavail * uint64(fs.Bsize)
	switch {
	case free < need:
		return fmt.Errorf("%w: %d MiB are free, %d MiB are needed", unix.ENOSPC, free>>20, need>>20)
	case fs.Bavail*100 < fs.Blocks*LeastSpace:
		return fmt.Errorf("%w: less than %d%% of the file system is free, so that nodes would take no pods",
			unix.ENOSPC, LeastSpace)
	case fs.Ffree*100 < fs.Files*LeastInodes:
		return fmt.Errorf("%w: less than %d%% of the file system's inodes are free, so that nodes would take no pods",
			unix.ENOSPC, LeastInodes)
	}
	return nil
}

// TryWriting writes a small file in dir to the disk and removes it. Its error is the one that a cluster's first write
// would have.
func TryWriting(dir string) error {
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
