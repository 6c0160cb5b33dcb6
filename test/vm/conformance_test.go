package vm

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bonsai/api/kubeversion"
)

var (
	suite = flag.String("suite", "/var/lib/bonsai-conformance",
		"where `make conformance` keeps the suites and their images; TestConformance builds that of our release unless it is there")
	focus = flag.String("focus", "",
		"which specs TestConformance runs, as a regular expression; without one, those of test/stock/specs and testdata/specs")
)

// done is how a line begins that says what became of a spec: its number, those of all and what it was.
var done = regexp.MustCompile(`^ *\d+/\d+ (passed|FAILED) `)

// TestConformance runs a part of Kubernetes' conformance suite in a machine: some sixty specs over all SIGs, of what
// a kernel, a cgroup version and an init can break.
func TestConformance(t *testing.T) {
	m := newMachine(t, func(c *Config) { c.Memory = 6144 })
	program := filepath.Join(t.TempDir(), "conformance")
	if err := run(t.Context(), "go", "build", "-C", "../conformance", "-o", program, "."); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), program, "build", "-module", "../conformance", "-data", *suite); err != nil {
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
	all := specs(t)
	ran := make([]bool, len(all))
	// A shell ends its word at an apostrophe.
	pattern := "(" + strings.ReplaceAll(strings.Join(all, "|"), "'", ".") + ")"
	err := m.Follow(ctx, "/root/conformance run -module /root -product /usr/local/lib/bonsai -data /root/suite -procs 1 "+
		"-pull-first -timeout 6h -focus '"+pattern+"'", func(line string) {
		t.Log(line)
		if !done.MatchString(line) {
			return
		}
		for i, name := range all {
			ran[i] = ran[i] || regexp.MustCompile(name).MatchString(line)
		}
	})
	if err != nil {
		t.Error(err)
	}
	for i, name := range all {
		if !ran[i] {
			t.Errorf("no spec of %s has the name %q", kubeversion.Release, name)
		}
	}
	t.Log(must(t, m, "sed -n '/passed:/p; /^## Failing/,/^## Newly/p' /root/suite/RESULTS.md"))
}

// specs returns the regular expressions of the names of the specs to run.
func specs(t *testing.T) []string {
	t.Helper()
	if *focus != "" {
		return []string{*focus}
	}
	var all []string
	for _, file := range []string{"../stock/specs", "testdata/specs"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.Split(strings.TrimSpace(string(data)), "\n")...)
	}
	return all
}
