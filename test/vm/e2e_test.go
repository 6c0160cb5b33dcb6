package vm

import (
	"context"
	"flag"
	"path/filepath"
	"testing"
	"time"
)

var e2e = flag.String("e2e", ".", "which of the end-to-end tests TestEndToEnd runs, as a regular expression")

// TestEndToEnd runs test/e2e in a machine. Without Go there, the tests that build programs of their own skip.
func TestEndToEnd(t *testing.T) {
	m := newMachine(t)
	program := filepath.Join(t.TempDir(), "e2e.test")
	if err := run(t.Context(), "go", "test", "-c", "-o", program, "../e2e"); err != nil {
		t.Fatal(err)
	}
	within(t, func(ctx context.Context) error { return m.Copy(ctx, program, "/root") })
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
	defer cancel()
	err := m.Follow(ctx, "cd /root && BONSAI_BIN=/usr/local/lib/bonsai ./e2e.test -test.v -test.timeout 6h -slow 15 -test.run '"+
		*e2e+"'", func(line string) { t.Log(line) })
	if err != nil {
		t.Error(err)
	}
}
