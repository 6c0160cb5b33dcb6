package supervisor

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
	"bonsai/pkg/cluster/systemd"

	"golang.org/x/sys/unix"
)

// lockFile is the file descriptor with which a supervisor in the background begins: the lock of its data directory.
const lockFile = 3

// untilReleased returns a context that ends when starter ends without a byte: before the supervisor answered, the
// process that started it has gone, or no longer wants it (Launch).
func untilReleased(ctx context.Context, starter io.Reader) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		if _, err := io.ReadFull(starter, make([]byte, 1)); err != nil {
			cancel()
		}
	}()
	return ctx
}

// RunInBackground is the life of a supervisor that Launch has started. starter is its standard input.
func RunInBackground(ctx context.Context, c plan.Config, self string, starter io.Reader, log *slog.Logger) error {
	if err := unix.Flock(lockFile, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return fmt.Errorf("the supervisor is started by bonsai up: %w", err)
	}
	// the lock ends with this process, whichever child outlives it
	unix.CloseOnExec(lockFile)
	if err := host.IgnoreMissing(os.Remove(c.Layout().Service())); err != nil { // a killed service left it
		return err
	}
	return Run(untilReleased(ctx, starter), c, self, systemd.ScopeGroup, log)
}

// OpenLog opens the log of a supervisor in the background. This process's standard error goes there too, for the last
// message of the Go runtime.
func OpenLog(l plan.Layout) (io.WriteCloser, error) {
	return supervise.OpenStderrLog(l.Log(LogName))
}

// OpenServiceLog is OpenLog for a supervisor in the foreground: a service manager keeps its standard error, or a user
// reads it.
func OpenServiceLog(l plan.Layout) (io.WriteCloser, error) {
	return supervise.OpenLog(l.Log(LogName))
}
