package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bonsai/pkg/cluster/host"
)

// machineLock is the file whose lock a start holds from its look at the machine until the other clusters can see what
// it has taken.
const machineLock = "/run/bonsai.lock"

// lockMachine waits for the lock at path. The lock is free again when the returned file is closed, or this process has
// ended.
func lockMachine(ctx context.Context, path string) (*os.File, error) {
	f, err := host.Lock(ctx, path)
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("wait for another start on this machine (%s): %w", path, err)
	}
	return nil, fmt.Errorf("lock the machine: %w", err)
}

// lockData takes the lock that a running supervisor holds on its data directory. The lock ends with the process that
// holds it.
func lockData(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := host.TryLock(path)
	if errors.Is(err, host.ErrLocked) {
		return nil, fmt.Errorf("a cluster is already running in %s", filepath.Dir(filepath.Dir(path)))
	}
	return f, err
}
