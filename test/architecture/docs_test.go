package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository as seen from this package.
const root = "../.."

var (
	link = regexp.MustCompile(`\]\(([^)\s#]+)(?:#[^)]*)?\)`)
	// place is "path/file.go:Name" or "path/file.go:Type.Method".
	place = regexp.MustCompile(`([\w./-]+\.go):([A-Za-z_]\w*(?:\.\w+)?)`)
	// folder is a path of ours in backquotes.
	folder = regexp.MustCompile("`((?:api|cmd|deploy|docs|pkg|test)/[\\w./-]*)`")
)

// documents are the pages that speak about the code.
func documents(t *testing.T) []string {
	t.Helper()
	pages := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 4 {
		t.Fatalf("only %d pages: %v", len(pages), pages)
	}
	return pages
}

// TestDocuments: what the pages link to and name is there. A page that names what was moved or renamed misleads.
func TestDocuments(t *testing.T) {
	for _, page := range documents(t) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
		for _, m := range folder.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
			}
		}
		for _, m := range place.FindAllStringSubmatch(text, -1) {
			if !declared(t, filepath.Join(root, m[1]), m[2]) {
				t.Errorf("%s names %s, which has no %s", page, m[1], m[2])
			}
		}
	}
}

// command is one of our programs with a subcommand. behind matches one behind something that is neither an operator of
// the shell nor a program that runs another.
var (
	command = `(?:bonsai|kubectl) [a-z]`
	behind  = regexp.MustCompile(`[\w./"'] +` + command)
	runner  = regexp.MustCompile(`\b(?:sudo|docker compose exec \w+) +` + command)
)

// TestCommands: each line of a page's commands is one command. Whoever reflows a page may join them, and readers then
// copy what does something else. The pages of docs/reference are generated.
func TestCommands(t *testing.T) {
	for _, page := range documents(t) {
		if strings.Contains(page, "docs/reference/") {
			continue
		}
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		fenced := false
		for i, line := range strings.Split(string(raw), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
				continue
			}
			code := fenced || strings.HasPrefix(line, "    ") && !strings.HasPrefix(strings.TrimSpace(line), "- ")
			if code && behind.MatchString(runner.ReplaceAllString(line, "")) {
				t.Errorf("%s:%d has more than one command: %s", page, i+1, line)
			}
		}
	}
}

// picture is an image of a page: its text, which is for who cannot see it, and its file.
var picture = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)

// TestPictures: each picture says in words what it shows, is small, and is shown by a page.
func TestPictures(t *testing.T) {
	const most, least = 80 << 10, 20 // bytes of a picture, characters of its text
	shown := map[string]bool{}
	for _, page := range documents(t) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range picture.FindAllStringSubmatch(string(raw), -1) {
			if len(m[1]) < least {
				t.Errorf("%s: the picture %s has the text %q", page, m[2], m[1])
			}
			shown[filepath.Join(filepath.Dir(page), m[2])] = true
		}
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".png" {
			return err
		}
		info, err := d.Info()
		switch {
		case err != nil:
			return err
		case info.Size() > most:
			t.Errorf("%s has %d bytes", path, info.Size())
		case !shown[path]:
			t.Errorf("no page shows %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// declared reports whether the file declares the function, method ("Name" or "Type.Name"), type, constant or variable.
func declared(t *testing.T, path, name string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return false
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name || receiver(d)+"."+d.Name.Name == name {
				return true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.Name == name {
						return true
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.Name == name {
							return true
						}
					}
				}
			}
		}
	}
	return false
}

// receiver is the name of a method's type, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	x := f.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
