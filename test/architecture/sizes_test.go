package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxExports is how many names a package may export on its own level, and maxMethods how many methods a type may have:
// what is larger has more than one job, and nobody keeps it in mind.
const (
	maxExports = 60
	maxMethods = 40
)

// larger are the exceptions, by package or by package and type, with the size that they may have and the reason.
var larger = map[string]struct {
	size   int
	reason string
}{}

// sizes adds the exported names of a file to its package, and its methods to their types.
func sizes(folder string, file *ast.File, exports, methods map[string]int) {
	count := func(name *ast.Ident) {
		if name.IsExported() {
			exports[folder]++
		}
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				count(d.Name)
			} else {
				methods[folder+"."+receiver(d)]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					count(s.Name)
				case *ast.ValueSpec:
					for _, name := range s.Names {
						count(name)
					}
				}
			}
		}
	}
}

// TestSizes: packages and types stay small, except those that are named, which do not grow.
func TestSizes(t *testing.T) {
	exports, methods := map[string]int{}, map[string]int{}
	for _, floor := range []string{"api", "cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, floor), func(path string, _ os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") ||
				strings.Contains(path, "testdata") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			sizes(folder, file, exports, methods)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	rest := maps.Clone(larger)
	for what, counted := range map[string]map[string]int{"exported names": exports, "methods": methods} {
		limit := maxExports
		if what == "methods" {
			limit = maxMethods
		}
		for _, name := range slices.Sorted(maps.Keys(counted)) {
			allowed, excepted := larger[name]
			delete(rest, name)
			switch n := counted[name]; {
			case excepted && n <= limit:
				t.Errorf("%s has %d %s: it needs no exception any more", name, n, what)
			case n > max(limit, allowed.size):
				t.Errorf("%s has %d %s, and %d are allowed: give it one job", name, n, what, max(limit, allowed.size))
			}
		}
	}
	for name := range rest {
		t.Errorf("the exception %s does not exist", name)
	}
}

// TestSizesOfAFile: what is counted, and for whom.
func TestSizesOfAFile(t *testing.T) {
	const source = `package a
const A, b = 1, 2
var C int
type D[T any] struct{}
func (D[T]) e() {}
func (*D[T]) F() {}
func G() {}
func h() {}`
	file, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	exports, methods := map[string]int{}, map[string]int{}
	sizes("p", file, exports, methods)
	if want := map[string]int{"p": 4}; !maps.Equal(exports, want) {
		t.Errorf("exports %v, not %v", exports, want)
	}
	if want := map[string]int{"p.D": 2}; !maps.Equal(methods, want) {
		t.Errorf("methods %v, not %v", methods, want)
	}
}
