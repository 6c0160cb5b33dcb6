package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// machineLock is held by a start from its look at the machine until the others can see what it has taken.
const machineLock = "/run/bonsai.lock"

// lockMachine waits for the lock at path, which is free again when the file that it returns is closed, or this process has ended.
func lockMachine(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the machine: %w", err)
	}
	err = poll(ctx, 20*time.Millisecond, func() (bool, error) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for another start on this machine (%s): %w", path, err), f.Close())
	}
	return f, nil
}
