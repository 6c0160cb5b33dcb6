package machine

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMachineLock: of two starts the second waits for the first, and no longer than its context lasts.
func TestMachineLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(over, path, io.Discard); err == nil {
		t.Error("two have the lock")
	} else if want := "wait for another bonsai command on this machine (" + path + ")"; !strings.HasPrefix(err.Error(),
		want) {
		t.Errorf("%v, want %s", err, want)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := lock(t.Context(), path, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

// TestLongWait: a command that waits for another says so once, and for which one, unless the wait is short.
func TestLongWait(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	synctest.Test(t, func(t *testing.T) {
		first, err := lock(t.Context(), path, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		for patience, want := range map[time.Duration]string{
			quietPatience / 2: "",
			time.Minute: fmt.Sprintf("Waiting for another bonsai command on this machine (process %d, %s).\n",
				os.Getpid(), path),
		} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var out strings.Builder
			if _, err := lock(ctx, path, &out); err == nil || out.String() != want {
				t.Errorf("after %v: %v, %q, want %q", patience, err, &out, want)
			}
		}
	})
}
