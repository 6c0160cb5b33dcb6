package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func (f *fake) Checkpoint(_ context.Context, id, path string, timeout time.Duration) error {
	f.checkpointed = id + " " + timeout.String()
	return errors.Join(os.WriteFile(path, []byte(id), 0o644), f.failCheckpoint)
}

// TestCheckpoint: where an archive is, who may read it, and that a failure leaves none.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	h, f, pod := setup()
	h.Checkpoints, h.Now = filepath.Join(t.TempDir(), "checkpoints"), func() time.Time { return time.Unix(0, 0).UTC() }
	path, err := h.Checkpoint(t.Context(), pod, "c", 3*time.Second)
	if err != nil || path != filepath.Join(h.Checkpoints, "checkpoint-p_ns-c-1970-01-01T00:00:00Z.tar") ||
		f.checkpointed != "c1 3s" {
		t.Fatalf("%s, %v, asked %q", path, err, f.checkpointed)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, h.Checkpoints: 0o700 | os.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if _, err := h.Checkpoint(t.Context(), pod, "done",
		0); err == nil || err.Error() != `container not found ("done")` {
		t.Error(err)
	}
	f.failCheckpoint = errors.New("no CRIU")
	if _, err := h.Checkpoint(t.Context(), pod, "c", 0); !errors.Is(err, f.failCheckpoint) {
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("half an archive is left: %v", err)
	}
}
