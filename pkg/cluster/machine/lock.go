package machine

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
)

// lockFile is the file whose lock a start holds from its look at the machine until other clusters can see what it has
// taken: two starts at the same moment would choose the same addresses.
const lockFile = "/run/bonsai.lock"

// quietPatience is how long a command waits for the lock without a word.
const quietPatience = time.Second

// Lock waits for the lock that every command holds that changes a cluster. The lock is free again when the returned
// file is closed, or this process has ended. A wait that takes long is said on standard error: the other command may
// take minutes.
func Lock(ctx context.Context) (*os.File, error) { return lock(ctx, lockFile, os.Stderr) }

// lock waits for the lock of the file at path.
func lock(ctx context.Context, path string, out io.Writer) (*os.File, error) {
	quiet, cancel := context.WithTimeout(ctx, quietPatience)
	defer cancel()
	f, err := host.Lock(quiet, path)
	if err != nil && quiet.Err() != nil && ctx.Err() == nil {
		fmt.Fprintf(out, "Waiting for another bonsai command on this machine (%s%s).\n", holder(path), path)
		f, err = host.Lock(ctx, path)
	}
	switch {
	case err == nil:
		return f, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("wait for another bonsai command on this machine (%s): %w", path, err)
	}
	return nil, fmt.Errorf("lock the machine: %w", err)
}

// holder returns "process N, " for the process that has locked the file, as the kernel lists it, or "" if the list does
// not have it: flock(2) itself does not tell.
func holder(path string) string {
	var stat unix.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Stat(path, &stat) != nil {
		return ""
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK ADVISORY WRITE 2178 fe:00:10002457 0 EOF
		if f := strings.Fields(line); len(f) > 5 && f[1] == "FLOCK" && f[5] == file {
			return "process " + f[4] + ", "
		}
	}
	return ""
}
