package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bonsai/pkg/cluster/host"
)

// Lock takes the lock that a running supervisor holds on its data directory. The kernel releases it when the last
// process that has the returned file has ended or closed it.
func Lock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := host.TryLock(path)
	if errors.Is(err, host.ErrLocked) {
		return nil, fmt.Errorf("a cluster is already running in %s", filepath.Dir(filepath.Dir(path)))
	}
	return f, err
}

// IsLocked reports whether a supervisor holds the lock at path. It makes no file.
func IsLocked(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock, err := Lock(path)
	if err != nil {
		return true
	}
	lock.Close()
	return false
}
