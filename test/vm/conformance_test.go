package vm

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bonsai/api/kubeversion"
)

var (
	suite = flag.String("suite", "/var/lib/bonsai-conformance",
		"where `make conformance` keeps the suites and their images; TestConformance takes that of our release")
	focus = flag.String("focus", "",
		"which specs TestConformance runs, as a regular expression; without one, those of test/stock/specs and testdata/specs")
)

// TestConformance runs a part of Kubernetes' conformance suite in a machine: more than fifty specs over all SIGs, of
// what a kernel, a cgroup version and an init can break.
func TestConformance(t *testing.T) {
	if _, err := os.Stat(filepath.Join(*suite, kubeversion.Release, "bin", "e2e.test")); *machines && err != nil {
		t.Fatalf("%v: run make conformance first, which builds the suite", err)
	}
	m := newMachine(t, func(c *Config) { c.Memory = 6144 })
	program := filepath.Join(t.TempDir(), "conformance")
	if err := run(t.Context(), "go", "build", "-C", "../conformance", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	within(t, func(ctx context.Context) error { return m.Copy(ctx, program, "/root") })
	for _, part := range []string{"bin", "images"} {
		within(t, func(ctx context.Context) error {
			return m.Copy(ctx, filepath.Join(*suite, kubeversion.Release, part),
				"/root/suite/"+kubeversion.Release+"/"+part)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
	defer cancel()
	err := m.Follow(ctx, "/root/conformance run -module /root -product /usr/local/lib/bonsai -data /root/suite -procs 1 "+
		"-pull-first -timeout 6h -focus '"+specs(t)+"'", func(line string) { t.Log(line) })
	if err != nil {
		t.Error(err)
	}
	t.Log(must(t, m, "sed -n '/passed:/p; /^## Failing/,/^## Newly/p' /root/suite/RESULTS.md"))
}

// specs returns the regular expression of the specs to run.
func specs(t *testing.T) string {
	t.Helper()
	if *focus != "" {
		return *focus
	}
	var all []string
	for _, file := range []string{"../stock/specs", "testdata/specs"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	}
	// A shell ends its word at an apostrophe.
	return "(" + strings.ReplaceAll(strings.Join(all, "|"), "'", ".") + ")"
}
