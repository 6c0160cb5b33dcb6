// Package flagtest holds the flags of a component against those of Kubernetes' own.
package flagtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// flag is a flag's name in backquotes.
var flag = regexp.MustCompile("`([a-z][a-z0-9-]*)`")

// Stock wants every flag of Kubernetes' component of that name, as pkg/cluster/testdata/flags has them, to be among fs,
// and those without effect to take the same type of value; and the table of docs/features.md to name all of fs that
// have no effect, and no others.
func Stock(t *testing.T, component string, fs *pflag.FlagSet) {
	t.Helper()
	recorded, err := os.ReadFile(filepath.Join("..", "..", "pkg", "cluster", "testdata", "flags", component+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(recorded)) {
		name, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		f := fs.Lookup(name)
		switch {
		case name != "help" && f == nil && (len(name) != 1 || fs.ShorthandLookup(name) == nil):
			t.Errorf("--%s of Kubernetes' %s is not known", name, component)
		case f != nil && strings.HasSuffix(f.Usage, withoutEffect) && shownType(f) != kind:
			t.Errorf("%s --%s takes %s; Kubernetes' own takes %s", component, name, shownType(f), kind)
		}
	}
	told := named(t, "features.md", "| of | without effect |", component)
	fs.VisitAll(func(f *pflag.Flag) {
		idle := strings.HasSuffix(f.Usage, withoutEffect)
		if idle != slices.Contains(told, f.Name) {
			t.Errorf("%s --%s has no effect: %t; docs/features.md says so: %t", component, f.Name, idle, !idle)
		}
	})
	for _, name := range told {
		if fs.Lookup(name) == nil {
			t.Errorf("docs/features.md names --%s, which %s does not have", name, component)
		}
	}
}

// withoutEffect ends the usage of a flag that is only accepted.
const withoutEffect = "without effect."

// shownType is the type of a flag's values as --help shows it, which leaves out that of switches.
func shownType(f *pflag.Flag) string {
	if kind, _ := pflag.UnquoteUsage(f); kind != "" {
		return kind
	}
	return f.Value.Type()
}

// named are the flags in the rows of a page's first table with that heading whose first cell names the component.
func named(t *testing.T, page, heading, component string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), heading)
	if !ok {
		t.Fatalf("docs/%s has no table %q", page, heading)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`"+component+"`") {
			continue
		}
		for _, m := range flag.FindAllStringSubmatch(cells[2], -1) {
			names = append(names, m[1])
		}
	}
	return names
}
