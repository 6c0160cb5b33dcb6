package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
)

// tree is what the rules are held against: all packages of the module without their tests, or a small one from
// testdata.
type tree struct {
	fset     *token.FileSet
	packages []*pkg
}

// pkg is one package as written.
type pkg struct {
	path, name string
	files      []*ast.File
	// imports are the import paths of all files, each once.
	imports []string
	info    *types.Info
}

// module is our own module, read once for all rules.
var module = sync.OnceValues(func() (*tree, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles", "bonsai/...").Output()
	if err != nil {
		return nil, err
	}
	t := &tree{fset: token.NewFileSet()}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			t.resolve()
			return t, nil
		} else if err != nil {
			return nil, err
		}
		for _, name := range p.GoFiles {
			if err := t.add(p.ImportPath, filepath.Join(p.Dir, name), nil); err != nil {
				return nil, err
			}
		}
	}
})

// readTree makes a tree of the Go files of an archive, whose names are "import/path/file.go".
func readTree(t *testing.T, a *txtar.Archive) *tree {
	t.Helper()
	out := &tree{fset: token.NewFileSet()}
	for _, f := range a.Files {
		if err := out.add(path.Dir(f.Name), f.Name, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	out.resolve()
	return out
}

// add parses one file of the package at importPath.
func (t *tree) add(importPath, name string, source []byte) error {
	var src any
	if source != nil {
		src = source
	}
	file, err := parser.ParseFile(t.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p := t.find(importPath)
	if p == nil {
		p = &pkg{path: importPath, name: file.Name.Name}
		t.packages = append(t.packages, p)
	}
	p.files = append(p.files, file)
	for _, i := range file.Imports {
		imported, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			return err
		}
		if !slices.Contains(p.imports, imported) {
			p.imports = append(p.imports, imported)
		}
	}
	return nil
}

func (t *tree) find(importPath string) *pkg {
	for _, p := range t.packages {
		if p.path == importPath {
			return p
		}
	}
	return nil
}

// resolve finds what each name means inside its package. Imported packages are empty, so that nothing must be compiled:
// the complaints about what they lack are left out of account, and types that come from them are unknown.
func (t *tree) resolve() {
	for _, p := range t.packages {
		p.info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
			Types: map[ast.Expr]types.TypeAndValue{}}
		conf := types.Config{Importer: t, Error: func(error) {}}
		_, _ = conf.Check(p.path, t.fset, p.files, p.info)
	}
}

var version = regexp.MustCompile(`^v[0-9]+$`)

// Import implements types.Importer.
func (t *tree) Import(importPath string) (*types.Package, error) {
	name := path.Base(importPath)
	if version.MatchString(name) {
		name = path.Base(path.Dir(importPath))
	}
	if p := t.find(importPath); p != nil {
		name = p.name
	}
	empty := types.NewPackage(importPath, name)
	empty.MarkComplete()
	return empty, nil
}

// at says where n stands: "import/path/file.go:line".
func (t *tree) at(p *pkg, n ast.Node) string {
	pos := t.fset.Position(n.Pos())
	return p.path + "/" + filepath.Base(pos.Filename) + ":" + strconv.Itoa(pos.Line)
}

// fileName is the base name of a file.
func (t *tree) fileName(f *ast.File) string {
	return filepath.Base(t.fset.Position(f.Package).Filename)
}

// qualified returns the import path and name of pkg.Name, "" for any other expression.
func (p *pkg) qualified(e ast.Expr) (importPath, name string) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	if imported, ok := p.info.Uses[x].(*types.PkgName); ok {
		return imported.Imported().Path(), s.Sel.Name
	}
	return "", ""
}

// under reports whether path is root or below it.
func under(path, root string) bool { return path == root || strings.HasPrefix(path, root+"/") }

// forTests reports whether the package at path is a test or what tests are made with.
func forTests(path string) bool { return under(path, "bonsai/test") || strings.HasSuffix(path, "test") }

func anyUnder(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return under(path, r) })
}
