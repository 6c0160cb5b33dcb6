package teardown

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/supervise"
)

// TestStopInOrder: the supervisor that holds the data directory is asked to end. A process that has the number of a
// supervisor that has ended in the meantime, and whose place another one has taken, is not.
func TestStopInOrder(t *testing.T) {
	t.Parallel()
	for name, succeeded := range map[string]bool{"supervisor": false, "reused number": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := plan.Default(filepath.Join(t.TempDir(), "c"), "").Layout()
			if err := host.WriteFile(l.Lock(), nil); err != nil {
				t.Fatal(err)
			}
			lock, err := datadir.Lock(l.Lock())
			if err != nil {
				t.Fatal(err)
			}
			// One that is not asked to end gets SIGKILL in the end, which the test tells from SIGTERM.
			ctx, cancel := context.WithTimeout(t.Context(), answerPatience)
			defer cancel()
			first, second := exec.CommandContext(ctx, "sleep", "1000"), exec.CommandContext(ctx, "sleep", "1000")
			if err := errors.Join(first.Start(), second.Start()); err != nil {
				t.Fatal(err)
			}
			asked := atomic.Int32{}
			serving, stop := context.WithCancel(t.Context())
			served := make(chan error, 1)
			go func() {
				served <- supervise.Serve(serving, l.Socket("supervisor"), func() supervise.Status {
					if asked.Add(1) > 1 && succeeded {
						return supervise.Status{PID: second.Process.Pid}
					}
					return supervise.Status{PID: first.Process.Pid}
				}, nil)
			}()
			ended, other := first, second
			if succeeded {
				ended, other = second, first
			}
			stopped := make(chan error, 1)
			go func() { stopped <- stopInOrder(t.Context(), l) }()
			if err := ended.Wait(); err == nil || err.Error() != "signal: terminated" {
				t.Errorf("the supervisor ended with %v", err)
			}
			stop()
			if err := errors.Join(<-served, lock.Close(), <-stopped); err != nil && !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
			if err := errors.Join(other.Process.Signal(syscall.SIGINT), other.Wait()); err == nil ||
				err.Error() != "signal: interrupt" {
				t.Errorf("the other process ended with %v", err)
			}
		})
	}
}
