package vm

import (
	"context"
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var e2e = flag.String("e2e", ".", "which of the end-to-end tests TestEndToEnd runs, as a regular expression")

// heavy are the tests that an emulated machine is too slow for: of three control planes on its one processor, none
// renews its leases in time. TestControlPlanes gives each a machine.
const heavy = "^(TestEncryption|TestHighAvailability)$"

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
	skip, slow := "", "1"
	if strings.HasPrefix(*accelerator, "tcg") {
		skip, slow = heavy, "15"
	}
	passed := 0
	err := m.Follow(ctx, "cd /root && BONSAI_BIN=/usr/local/lib/bonsai ./e2e.test -test.v -test.timeout 6h -slow "+slow+" -test.run '"+
		*e2e+"' -test.skip '"+skip+"'", func(line string) {
		t.Log(line)
		if strings.HasPrefix(line, "--- PASS") {
			passed++
		}
	})
	if err != nil || passed == 0 {
		t.Errorf("%d tests passed: %v", passed, err)
	}
}
