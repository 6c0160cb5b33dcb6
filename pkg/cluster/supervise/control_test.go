package supervise

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestControlSocketIsPrivate: the socket is its owner's alone from its beginning. Its mode is not changed afterwards,
// when its path may lead to something else.
func TestControlSocketIsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "control")
	changes, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(changes)
	if _, err := unix.InotifyAddWatch(changes, dir, unix.IN_ATTRIB); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, path, func() Status { return Status{} }, nil) }()
	for {
		_, err := Ask(ctx, path)
		if err == nil {
			break
		}
		if len(done) > 0 || t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if n, err := unix.Read(changes, make([]byte, 4096)); err != unix.EAGAIN {
		t.Errorf("the socket was changed after it was made: %d bytes of events, %v", n, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
