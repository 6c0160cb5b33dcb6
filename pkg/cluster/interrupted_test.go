package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
)

// TestInterrupted: a down or stop that is interrupted before the processes have ended leaves what they use: the
// supervisor's socket and lock, and the user's context.
func TestInterrupted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	c := plantest.Config(t)
	if err := errors.Join(datadir.Save(c), pki.Make(c, time.Now()), host.WriteFile(c.Layout().Lock(), nil),
		host.WriteFile(c.Layout().Started(), nil),
		kubeconfig.Export(t.Context(), c, io.Discard)); err != nil {
		t.Fatal(err)
	}
	supervisor, err := datadir.Lock(c.Layout().Lock())
	if err != nil {
		t.Fatal(err)
	}
	defer supervisor.Close()
	var asked atomic.Pointer[context.CancelFunc] // called when the supervisor is asked
	go supervise.Serve(t.Context(), c.Layout().Socket("supervisor"), func() supervise.Status {
		if end := asked.Load(); end != nil {
			(*end)()
		}
		return supervise.Status{PID: os.Getpid()}
	}, nil)
	if err := host.Poll(t.Context(), time.Millisecond, func() (bool, error) {
		return running(t.Context(), c), nil
	}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(context.Context) error{
		"down": func(ctx context.Context) error {
			_, err := Down(ctx, c.DataDir, false, false, io.Discard)
			return err
		},
		"stop": func(ctx context.Context) error { return Stop(ctx, c.DataDir, io.Discard) },
	} {
		for when, first := range map[string]bool{"before it begins": true, "while processes end": false} {
			ctx, cancel := context.WithCancel(t.Context())
			if first {
				cancel()
			} else {
				asked.Store(&cancel)
			}
			err := run(ctx)
			cancel()
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, interrupted %s: %v", name, when, err)
			}
			if err := errors.Join(host.StatError(c.Layout().Lock()), host.StatError(c.Layout().Started())); err != nil {
				t.Fatalf("%s, interrupted %s: %v", name, when, err)
			}
			if after, err := os.ReadFile(os.Getenv("KUBECONFIG")); err != nil || string(after) != string(before) {
				t.Errorf("%s, interrupted %s: the context has gone: %v", name, when, err)
			}
		}
	}
}
