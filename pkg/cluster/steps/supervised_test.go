package steps

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/supervise"
)

// TestWhileSupervised: a step that waits in vain, because the supervisor was killed, fails at once and says why.
func TestWhileSupervised(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	s := NewStart(c.Layout(), nil, io.Discard)
	listener := listen(t, c.Layout())
	listener.SetUnlinkOnClose(false) // as after SIGKILL
	limit, cancel := context.WithTimeoutCause(t.Context(), 20*time.Second, errors.New("it waited on"))
	defer cancel()
	ctx, done := s.WhileSupervised(limit)
	defer done()
	err := s.Take(ctx, New("Wait", func(ctx context.Context) error {
		listener.Close()
		<-ctx.Done()
		return ctx.Err()
	}))
	if !errors.Is(err, errSupervisorEnded) || !strings.HasPrefix(err.Error(), "wait: the supervisor has ended") {
		t.Error(err)
	}
}

// TestHasEnded: a supervisor that is frozen or slow has not ended.
func TestHasEnded(t *testing.T) {
	t.Parallel()
	l := plantest.Config(t).Layout()
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := supervise.Ask(ctx, l.Socket("supervisor"))
		return err
	}
	if err := ask(); !hasEnded(err) {
		t.Errorf("without a socket: %v", err)
	}
	listener := listen(t, l) // and accepts nothing
	if err := ask(); err == nil || hasEnded(err) {
		t.Errorf("frozen: %v", err)
	}
	listener.SetUnlinkOnClose(false)
	listener.Close()
	// A program that another test is just starting holds the socket open until it is executed.
	for begun, err := time.Now(), ask(); !hasEnded(err); err = ask() {
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("killed: %v", err)
		}
	}
	if hasEnded(nil) {
		t.Error("it answers")
	}
}

// listen listens at the supervisor's control socket until the test ends.
func listen(t *testing.T, l plan.Layout) *net.UnixListener {
	t.Helper()
	path := l.Socket("supervisor")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}
