package steps

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
)

// TestFullDiskEndsTheWait: a component that ends for want of space ends a start at once, with its last words; one that
// ends for another reason is told when the start fails, and does not end it.
func TestFullDiskEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		script string
		full   bool
	}{
		{"echo starting; echo 'write wal: no space left on device' >&2; exit 1", true},
		{"echo 'bad flag' >&2; exit 1", false},
	} {
		s := supervise.New(t.Context(), slog.New(slog.DiscardHandler))
		go s.Keep(t.Context(), supervise.Process{Name: "p", Argv: []string{"/bin/sh", "-c", c.script},
			Log: filepath.Join(t.TempDir(), "p.log")})
		err := host.Poll(t.Context(), time.Millisecond, func() (bool, error) {
			all := s.Statuses()
			return len(all) == 1 && all[0].Restarts >= 1, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		config := plantest.Config(t)
		if err := os.MkdirAll(config.Layout().Run(), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- supervise.Serve(ctx, config.Layout().Socket("supervisor"), func() supervise.Status {
				return supervise.Status{Processes: s.Statuses()}
			}, nil)
		}()
		if err := host.Poll(ctx, time.Millisecond, func() (bool, error) {
			_, err := supervise.Ask(ctx, config.Layout().Socket("supervisor"))
			return err == nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		begun := NewStart(config.Layout(), config.NodeNames(), io.Discard)
		start, fail := context.WithCancelCause(ctx)
		if c.full {
			begun.WatchSpace(start, fail) // returns by itself
			err := begun.explain(start, "Wait for the API server", errors.New("cut short"))
			if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "p ended (exit status 1)") ||
				!strings.Contains(err.Error(), "write wal: no space left on device") {
				t.Errorf("%v", err)
			}
		} else {
			err := begun.explain(start, "Wait for the API server", errors.New("not ready after 40s"))
			if errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "not ready after 40s") ||
				!strings.Contains(err.Error(), "bad flag") {
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
