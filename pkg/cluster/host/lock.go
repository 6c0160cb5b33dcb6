package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is the error of TryLock when another process holds the lock.
var ErrLocked = errors.New("another process holds the lock")

// TryLock takes the lock of the file at path (flock(2)), which it makes if need be, or returns ErrLocked. The kernel
// releases the lock when the last copy of the returned file is closed, however its holder ends.
func TryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%s: %w", path, ErrLocked)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Lock is TryLock that waits for the lock until ctx ends. A context that has ended gets no lock, even a free one: its
// command must not begin what it cannot go through with.
func Lock(ctx context.Context, path string) (f *os.File, err error) {
	// A context cannot interrupt flock(2), so Lock tries again and again.
	err = Poll(ctx, 20*time.Millisecond, func() (bool, error) {
		f, err = TryLock(path)
		if errors.Is(err, ErrLocked) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil && ctx.Err() != nil {
		return nil, errors.Join(context.Cause(ctx), f.Close())
	}
	return f, err
}
