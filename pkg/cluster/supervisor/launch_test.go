package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
)

// TestSupervisorEnds: the error of a supervisor that ends at once has its last words, and none of an earlier one.
func TestSupervisorEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	if err := os.WriteFile(self, []byte("#!/bin/sh\necho the reason >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := plan.Default(dir, "")
	if err := os.MkdirAll(filepath.Dir(c.Layout().Log(LogName)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Layout().Log(LogName), []byte("an earlier reason\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Launch(t.Context(), c, self)
	if err == nil || !strings.HasSuffix(err.Error(),
		"the supervisor ended (exit status 3), its last words:\n  the reason") {
		t.Error(err)
	}
}
