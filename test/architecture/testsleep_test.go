package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// awake returns the tests among the files of one package that sleep by the real clock: neither they nor a function of
// the package that they call run in a bubble of testing/synctest. Functions that are no tests may sleep where a test
// with a bubble calls them.
func awake(files []*ast.File) (names []string) {
	bubbled, calls, sleeping := map[string]bool{}, map[string][]string{}, []string{}
	for _, file := range files {
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name, sleeps := fn.Name.Name, false
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok {
						sleeps = sleeps || x.Name == "time" && n.Sel.Name == "Sleep"
						bubbled[name] = bubbled[name] || x.Name == "synctest" && n.Sel.Name == "Test"
					}
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.Ident); ok {
						calls[f.Name] = append(calls[f.Name], name)
					}
				}
				return true
			})
			if sleeps {
				sleeping = append(sleeping, name)
			}
		}
	}
	for grown := true; grown; {
		grown = false
		for name, callers := range calls {
			for _, c := range callers {
				if bubbled[name] && !bubbled[c] {
					bubbled[c], grown = true, true
				}
			}
		}
	}
	inAny := slices.Contains(slices.Collect(maps.Values(bubbled)), true)
	for _, name := range sleeping {
		if !bubbled[name] && (strings.HasPrefix(name, "Test") || !inAny) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// TestTestsDoNotSleep: a test waits for a condition, or sleeps by the clock of its own bubble, which costs no time and
// cannot be too short on a slow machine.
func TestTestsDoNotSleep(t *testing.T) {
	byDir, fset := map[string][]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir("../..", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, "_test.go") || strings.Contains(p, "/testdata/") {
			return err
		}
		file, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
		byDir[path.Dir(p)] = append(byDir[path.Dir(p)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(byDir) < 20 {
		t.Fatalf("tests in only %d directories: the rule would check nothing", len(byDir))
	}
	for dir, files := range byDir {
		for _, name := range awake(files) {
			t.Errorf("%s: %s sleeps: wait for the condition, or use testing/synctest", dir, name)
		}
	}
}

// TestAwake: sleeping tests are found, and those in a bubble are not.
func TestAwake(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"by the real clock": {`func TestA(t *testing.T) { time.Sleep(1) }`, []string{"TestA"}},
		"in a bubble": {`func TestA(t *testing.T) { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`,
			nil},
		"in a helper's bubble": {`func TestA(t *testing.T) { two(t, func() { time.Sleep(1) }) }
			func two(t *testing.T, f func()) { one(t, f) }
			func one(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }`, nil},
		"beside a bubble": {`func TestA(t *testing.T) { time.Sleep(1) }
			func TestB(t *testing.T) { synctest.Test(t, func(t *testing.T) { wait() }) }
			func wait() { time.Sleep(1) }`, []string{"TestA"}},
		"a helper without any bubble": {`func TestA(t *testing.T) { wait() }
			func wait() { time.Sleep(1) }`, []string{"wait"}},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a_test.go", "package a\n"+c.source,
			parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := awake([]*ast.File{file}); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
