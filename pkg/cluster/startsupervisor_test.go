package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bonsai/pkg/cluster/plan"
)

// TestSupervisorEnds: a supervisor that ends at once is told of with what it said, and not with what an earlier one
// did.
func TestSupervisorEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self := filepath.Join(dir, "self")
	if err := os.WriteFile(self, []byte("#!/bin/sh\necho the reason >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := plan.Default(dir, "")
	if err := os.MkdirAll(filepath.Dir(c.Layout().Log(supervisorName)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Layout().Log(supervisorName), []byte("an earlier reason\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := startSupervisor(t.Context(), c, self)
	if err == nil || !strings.HasSuffix(err.Error(),
		"the supervisor ended (exit status 3), its last words:\n  the reason") {
		t.Error(err)
	}
}
