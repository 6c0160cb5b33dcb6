package daemon

import (
	"io"
	"log/slog"
	"testing"

	"bonsai/pkg/trace"
)

// TestVerbosity: a record of level Info-n shows from verbosity n on, whatever the verbosity records of level Info do.
func TestVerbosity(t *testing.T) {
	t.Parallel()
	for v, want := range map[int]struct{ info, step, debug bool }{
		-1: {info: true}, 0: {info: true}, 1: {info: true}, 2: {info: true, step: true}, 3: {info: true, step: true},
		4: {true, true, true}, 10: {true, true, true},
	} {
		log, err := (&Logging{Verbosity: v}).New(io.Discard, "c")
		if err != nil {
			t.Fatal(err)
		}
		for level, want := range map[slog.Level]bool{slog.LevelInfo: want.info, trace.Level: want.step,
			slog.LevelDebug: want.debug} {
			if got := log.Enabled(t.Context(), level); got != want {
				t.Errorf("-v=%d: level %v shows: %t", v, level, got)
			}
		}
	}
}
