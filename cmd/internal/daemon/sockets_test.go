package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

// TestSockets: a socket in whose place somebody else has put a directory costs the others nothing. Without any way to
// serve there is an error.
func TestSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	blocked := filepath.Join(dir, "blocked")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		paths []string
		want  int
		fails bool
	}{
		"none": {nil, 0, false}, "blocked": {[]string{blocked}, 0, true},
		"one of two": {[]string{blocked, filepath.Join(dir, "good")}, 1, false},
	} {
		s := &Server{Sockets: c.paths, Log: slog.New(slog.DiscardHandler)}
		all, err := s.listen(t.Context())
		closeAll(all)
		if len(all) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %d listeners, %v", name, len(all), err)
		}
	}
}
