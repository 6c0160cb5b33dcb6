package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSystemdUnit: what the unit starts are commands of ours, and systemd takes it.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	unit, err := os.ReadFile("../../deploy/systemd/bonsai@.service")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^Exec\w+=/usr/local/bin/bonsai (.*)$`).FindAllStringSubmatch(string(unit), -1)
	if len(lines) != 1 {
		t.Fatalf("it starts %q", lines)
	}
	for _, line := range lines {
		found, rest, err := command().Find(strings.Fields(strings.ReplaceAll(line[1], "%i", "dev")))
		if err != nil || found.Hidden || !found.Runnable() || found.ParseFlags(rest) != nil ||
			found.Args(found, found.Flags().Args()) != nil {
			t.Errorf("%q: %v", line[1], err)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: systemd-analyze is missing")
	}
	path := filepath.Join(t.TempDir(), "bonsai@.service")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(unit), "/usr/local/bin/bonsai", "/bin/true")),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
