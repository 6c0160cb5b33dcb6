// Package architecture holds the rules of the house as tests, each with its reason (docs/architecture.md).
package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// eachFile parses every non-test file of the module.
func eachFile(t *testing.T, visit func(p pkg, path string, fset *token.FileSet, file *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	for _, p := range load(t) {
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			visit(p, p.ImportPath+"/"+name, fset, file)
		}
	}
}

// TestPackageComments: a newcomer reads the package comment first.
func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	seen := map[string]bool{}
	eachFile(t, func(p pkg, _ string, _ *token.FileSet, file *ast.File) {
		seen[p.ImportPath] = true
		if file.Doc != nil {
			documented[p.ImportPath] = true
		}
	})
	for path := range seen {
		if !documented[path] {
			t.Errorf("%s has no package comment", path)
		}
	}
}

// TestPackageNames: a package is named by what it provides.
func TestPackageNames(t *testing.T) {
	for _, p := range load(t) {
		for _, part := range strings.Split(p.ImportPath, "/") {
			switch part {
			case "util", "utils", "common", "helper", "helpers", "misc":
				t.Errorf("%s: %q says nothing about what is in it", p.ImportPath, part)
			}
		}
	}
}

// TestNoInit: what is plugged in is an explicit list, not an import's side effect.
func TestNoInit(t *testing.T) {
	eachFile(t, func(_ pkg, path string, _ *token.FileSet, file *ast.File) {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s has an init function", path)
			}
		}
	})
}

// TestCalls: a context comes from the caller, only a main ends the process, and no one waits by sleeping where a condition
// can be waited for.
func TestCalls(t *testing.T) {
	forbidden := map[string]string{
		"context.Background": "the context comes from the caller (context.WithoutCancel detaches)",
		"context.TODO":       "the context comes from the caller",
		"os.Exit":            "only mains end the process",
		"log.Fatal":          "only mains end the process",
		"log.Fatalf":         "only mains end the process",
	}
	eachFile(t, func(p pkg, _ string, fset *token.FileSet, file *ast.File) {
		product := under(p.ImportPath, "bonsai/pkg") || under(p.ImportPath, "bonsai/api")
		if !product || file.Name.Name == "main" || strings.HasSuffix(p.ImportPath, "test") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok {
				if reason := forbidden[x.Name+"."+s.Sel.Name]; reason != "" {
					t.Errorf("%s uses %s.%s: %s", fset.Position(n.Pos()), x.Name, s.Sel.Name, reason)
				}
			}
			return true
		})
	})
}

// TestPure: pure packages take time and randomness as arguments.
func TestPure(t *testing.T) {
	pure := []string{"bonsai/api", "bonsai/pkg/apiserver/patch", "bonsai/pkg/kubelet/lifecycle"}
	eachFile(t, func(p pkg, _ string, fset *token.FileSet, file *ast.File) {
		if !anyUnder(p.ImportPath, pure) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Sleep" || s.Sel.Name == "Since") {
					t.Errorf("%s reads the clock in a pure package", fset.Position(n.Pos()))
				}
			}
			return true
		})
	})
}

// TestMutableGlobals: state has an owner. A package variable may be an error, a compiled pattern, a table that is only read,
// or an interface check; it may not be assigned to.
func TestMutableGlobals(t *testing.T) {
	eachFile(t, func(p pkg, _ string, fset *token.FileSet, file *ast.File) {
		globals := map[*ast.Object]bool{}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					globals[name.Obj] = true
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || a.Tok == token.DEFINE {
				return true
			}
			for _, left := range a.Lhs {
				if index, ok := left.(*ast.IndexExpr); ok {
					left = index.X
				}
				if id, ok := left.(*ast.Ident); ok && id.Obj != nil && globals[id.Obj] {
					t.Errorf("%s changes the package variable %s", fset.Position(a.Pos()), id.Name)
				}
			}
			return true
		})
	})
}
