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

// Stock wants every flag of Kubernetes' component of that name, as pkg/cluster/testdata/flags has them, to be among fs or in the table
// of docs/stock.md that says why it is not; and nothing in that table that is there, or that Kubernetes does not have.
func Stock(t *testing.T, component string, fs *pflag.FlagSet) {
	t.Helper()
	root := filepath.Join("..", "..")
	recorded, err := os.ReadFile(filepath.Join(root, "pkg", "cluster", "testdata", "flags", component+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "stock.md"))
	if err != nil {
		t.Fatal(err)
	}
	stock := strings.Fields(string(recorded))
	excused := named(t, string(page), "| of | not there |", component)
	for _, name := range stock {
		here := name == "help" || fs.Lookup(name) != nil || len(name) == 1 && fs.ShorthandLookup(name) != nil
		switch told := slices.Contains(excused, name); {
		case !here && !told:
			t.Errorf("--%s of Kubernetes' %s is not known, and docs/stock.md does not say why", name, component)
		case here && told:
			t.Errorf("docs/stock.md says that %s does not know --%s", component, name)
		}
	}
	for _, name := range excused {
		if !slices.Contains(stock, name) {
			t.Errorf("docs/stock.md names --%s, which Kubernetes' %s does not have", name, component)
		}
	}
}

// named are the flags in the rows of the page's first table with that heading whose first cell names the component.
func named(t *testing.T, page, heading, component string) (names []string) {
	t.Helper()
	_, table, ok := strings.Cut(page, heading)
	if !ok {
		t.Fatalf("docs/stock.md has no table %q", heading)
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
