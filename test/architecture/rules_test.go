// Package architecture holds the rules of the code as tests, each with its reason (docs/architecture.md).
package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// rule is one rule. Its name is that of its small trees in testdata.
type rule struct {
	name  string
	check func(*tree) []finding
	// allowed are the exceptions with their reasons, by the keys of findings.
	allowed map[string]string
}

// finding is one place that breaks a rule.
type finding struct {
	text string
	// keys are the names under which a rule may allow it.
	keys []string
}

// rules is the list of all rules.
func rules() []rule {
	return []rule{
		{"layers", layers, deciding},
		{"importers", importers, nil},
		{"siblings", siblings, shared},
		{"names", names, nil},
		{"terms", terms, nil},
		{"comments", comments, nil},
		{"init", inits, nil},
		{"calls", calls, nil},
		{"sleep", sleeps, nil},
		{"templates", templates, nil},
		{"pure", purity, nil},
		{"state", state, stateful},
		{"logkeys", logKeys, nil},
		{"sockets", sockets, listening},
		{"versions", versions, nil},
		{"metrics", metrics, nil},
	}
}

// broken returns what breaks r in t, and which of its exceptions applied.
func (r rule) broken(t *tree) (texts []string, used map[string]bool) {
	used = map[string]bool{}
	for _, f := range r.check(t) {
		allowed := false
		for _, k := range f.keys {
			if r.allowed[k] != "" {
				allowed, used[k] = true, true
			}
		}
		if !allowed {
			texts = append(texts, f.text)
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts), used
}

// TestModule: the module keeps its rules, and no exception outlives what it is for.
func TestModule(t *testing.T) {
	all, err := module()
	if err != nil {
		t.Fatalf("read the packages: %v", err)
	}
	if len(all.packages) < 20 {
		t.Fatalf("only %d packages: the rules would check nothing", len(all.packages))
	}
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			texts, used := r.broken(all)
			for _, text := range texts {
				t.Error(text)
			}
			for k := range r.allowed {
				if !used[k] {
					t.Errorf("%s is allowed what it does not do", k)
				}
			}
		})
	}
}

// TestRules: each rule refuses what breaks it in a small tree, all of it and nothing else. The archive
// testdata/NAME.txtar begins with what is to be found; the rest of its files are clean.
func TestRules(t *testing.T) {
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			raw, err := os.ReadFile(filepath.Join("testdata", r.name+".txtar"))
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(raw)
			want := strings.Split(strings.TrimSpace(string(a.Comment)), "\n")
			slices.Sort(want)
			got, _ := r.broken(readTree(t, a))
			for _, w := range want {
				if !slices.Contains(got, w) {
					t.Errorf("not refused: %s", w)
				}
			}
			for _, g := range got {
				if !slices.Contains(want, g) {
					t.Errorf("refused: %s", g)
				}
			}
		})
	}
}
