package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
)

// TestFullDiskEndsTheWait: a component that ends for want of space ends a start at once, with its last words; one that ends for
// another reason is told when the start fails, and does not end it.
func TestFullDiskEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		full   bool
	}{
		{"echo starting; echo 'write wal: no space left on device' >&2; exit 1", true},
		{"echo 'bad flag' >&2; exit 1", false},
	} {
		s, _, _ := supervise(t, c.script)
		waitStatus(t, s, func(p ProcessStatus) bool { return p.Restarts >= 1 })
		config := testConfig(t)
		if err := config.prepare(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- serveControl(ctx, config.layout().socket("supervisor"), func() Status { return Status{Processes: s.statuses()} }, nil)
		}()
		if err := host.Poll(ctx, time.Millisecond, func() (bool, error) { return running(ctx, config), nil }); err != nil {
			t.Fatal(err)
		}
		start, fail := context.WithCancelCause(ctx)
		if c.full {
			config.watchSpace(start, fail) // returns by itself
			err := config.explain(start, progress{}, "Wait for the API server", errors.New("cut short"))
			if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "p ended (exit status 1)") || !strings.Contains(err.Error(), "write wal: no space left on device") {
				t.Errorf("%v", err)
			}
		} else {
			err := config.explain(start, progress{}, "Wait for the API server", errors.New("not ready after 40s"))
			if errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "not ready after 40s") || !strings.Contains(err.Error(), "bad flag") {
				t.Errorf("%v", err)
			}
		}
		fail(nil)
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}
