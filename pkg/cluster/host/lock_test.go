package host

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// TestLockAfterEnd: who has been interrupted gets no lock, even a free one, and does not keep it from others.
func TestLockAfterEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if f, err := Lock(ctx, path); !errors.Is(err, why) || f != nil {
		t.Errorf("%v, %v", f, err)
	}
	f, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
}
