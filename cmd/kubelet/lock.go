package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
)

// lockOptions are the flags of the lock that one kubelet of a machine holds. A kubelet that starts another one, as a
// bootstrap did, ends when that one wants the lock.
type lockOptions struct {
	path string
	exit bool
}

func (o *lockOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.path, "lock-file", "", "The path of a file that the kubelet holds as a lock while it runs.")
	fs.BoolVar(&o.exit, "exit-on-lock-contention", false,
		"Exit when another process opens the file of --lock-file, and leave the node to it.")
}

// errContended ends a kubelet that leaves the lock to another one.
var errContended = errors.New("another process opened the lock file")

// lockAgain is how long the kubelet waits before it tries the lock again.
const lockAgain = time.Second

// take waits until the lock is free, or ctx ends, and returns what releases it.
func (o *lockOptions) take(ctx context.Context, log *slog.Logger) (release func(), err error) {
	f, err := os.OpenFile(o.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--lock-file: %w", err)
	}
	log.Info("Acquiring file lock", "path", o.path)
	retry := time.NewTicker(lockAgain)
	defer retry.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("--lock-file: lock %s: %w", o.path, err)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, ctx.Err()
		case <-retry.C:
		}
	}
}

// contended returns errContended when somebody opens or removes the file, and nil when ctx ends. The kubelet has opened
// it before.
func (o *lockOptions) contended(ctx context.Context) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("--exit-on-lock-contention: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	if _, err := unix.InotifyAddWatch(fd, o.path, unix.IN_OPEN|unix.IN_DELETE_SELF); err != nil {
		return fmt.Errorf("--exit-on-lock-contention: watch %s: %w", o.path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = events.Close() }) // ends the read
	defer stop()
	if _, err := events.Read(make([]byte, unix.SizeofInotifyEvent+unix.NAME_MAX+1)); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("--exit-on-lock-contention: watch %s: %w", o.path, err)
	}
	return errContended
}
