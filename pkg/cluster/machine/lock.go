package machine

import (
	"context"
	"fmt"
	"os"

	"bonsai/pkg/cluster/host"
)

// lockFile is the file whose lock a start holds from its look at the machine until other clusters can see what it has
// taken: two starts at the same moment would choose the same addresses.
const lockFile = "/run/bonsai.lock"

// Lock waits for the lock that every command holds that changes a cluster. The lock is free again when the returned
// file is closed, or this process has ended.
func Lock(ctx context.Context) (*os.File, error) { return lock(ctx, lockFile) }

// lock waits for the lock of the file at path.
func lock(ctx context.Context, path string) (*os.File, error) {
	f, err := host.Lock(ctx, path)
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("wait for another start on this machine (%s): %w", path, err)
	}
	return nil, fmt.Errorf("lock the machine: %w", err)
}
