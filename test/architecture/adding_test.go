package architecture

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// addingRow is a row of docs/adding.md: what it adds, the folder of its example, and the files in which it says to
// register.
type addingRow struct {
	adds, example string
	register      []string
}

var (
	exampleLink = regexp.MustCompile("for example \\[`[\\w/]+`\\]\\(\\.\\./([\\w/]+)\\)")
	pageLink    = regexp.MustCompile(`\]\(((?:\.\./)?[\w./-]+\.\w+)\)`)
)

// addingRows reads the rows that have an example. Paths are those from the root of the repository.
func addingRows(page string) (rows []addingRow) {
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 {
			continue
		}
		m := exampleLink.FindStringSubmatch(cells[2])
		if m == nil {
			continue
		}
		r := addingRow{adds: strings.TrimSpace(cells[1]), example: m[1]}
		for _, link := range pageLink.FindAllStringSubmatch(cells[3], -1) {
			r.register = append(r.register, filepath.Join("docs", link[1]))
		}
		rows = append(rows, r)
	}
	return rows
}

// optional are the files of docs/adding.md that its example does not need, with the reason.
var optional = map[string]string{
	"docs/kubectl.md":                   "Kubernetes' kubectl has the example, too",
	"test/kubectl/testdata/failing.txt": "the examples of the example's help succeed",
}

// otherNames are the names that files without imports know an example by.
var otherNames = map[string]string{
	"pkg/controller/podgc":            "pod-garbage-collector",
	"api/scheduling":                  "scheduling.k8s.io",
	"pkg/scheduler/plugins/nodename":  "NodeName",
	"pkg/kubelet/volume/nfs":          "nfs",
	"pkg/kubectl/taint":               "kubectl taint",
	"pkg/apiserver/registry/eviction": "eviction",
}

// TestAdding: the example of each row of docs/adding.md is in every file that the row names, and no other program file
// imports the example. So a reader who follows the page misses no file.
func TestAdding(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "adding.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := addingRows(string(page))
	if len(rows) < 7 {
		t.Fatalf("only %d rows of docs/adding.md have an example", len(rows))
	}
	imports := whoImports(t, root)
	for _, r := range rows {
		for _, fault := range r.faults(t, imports) {
			t.Errorf("docs/adding.md, %s: %s", r.adds, fault)
		}
	}
}

// faults returns what is wrong with a row. imports are the files that import each package, by its folder.
func (r addingRow) faults(t *testing.T, imports map[string][]string) (out []string) {
	for _, file := range r.register {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		other := otherNames[r.example]
		if optional[file] == "" && !strings.Contains(string(text), "bonsai/"+r.example+`"`) &&
			(other == "" || !strings.Contains(string(text), other)) && !declaresGroup(r.example, string(text)) {
			out = append(out, fmt.Sprintf("%s does not mention %s", file, r.example))
		}
	}
	for _, file := range imports[r.example] {
		if !slices.Contains(r.register, file) {
			out = append(out, fmt.Sprintf("%s imports %s, and is not named", file, r.example))
		}
	}
	return out
}

// TestEveryPackageIsUsed: another package imports each package of api and pkg, except programs and packages for tests.
// So what somebody wrote and forgot to register is found.
func TestEveryPackageIsUsed(t *testing.T) {
	imports := whoImports(t, root)
	for _, floor := range []string{"api", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, floor), func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() || strings.HasSuffix(path, "test") || d.Name() == "testdata" {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err == nil && len(imports[name]) == 0 && isLibrary(t, path) {
				t.Errorf("nothing imports %s: register it where docs/adding.md says, or delete it", name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// isLibrary reports whether a folder has Go code beside tests that is no program.
func isLibrary(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		return file.Name.Name != "main"
	}
	return false
}

// declaresGroup reports whether a file adds the API group of an example in api/ to the scheme.
func declaresGroup(example, text string) bool {
	return strings.Contains(text, `"k8s.io/`+example+`/`)
}

// whoImports returns the program files that import each package of ours from outside of its folder.
func whoImports(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, floor := range []string{"api", "cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, floor), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			for _, i := range file.Imports {
				if to, _ := strconv.Unquote(i.Path.Value); strings.HasPrefix(to, "bonsai/") {
					to = strings.TrimPrefix(to, "bonsai/")
					if !strings.HasPrefix(name, to+"/") {
						out[to] = append(out[to], name)
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestAddingFaults: a row that names a file without its example, and one that leaves a file out, are found.
func TestAddingFaults(t *testing.T) {
	page := "| a verb | a package, for example [`taint`](../pkg/kubectl/taint) | [here](../pkg/kubectl/commands.go), " +
		"[there](../pkg/kubectl/help.go) |\n| x | no example | [here](../pkg/kubectl/kubectl.go) |\n"
	rows := addingRows(page)
	if len(rows) != 1 || rows[0].example != "pkg/kubectl/taint" || len(rows[0].register) != 2 {
		t.Fatalf("%+v", rows)
	}
	imports := map[string][]string{"pkg/kubectl/taint": {"pkg/kubectl/commands.go", "cmd/kubectl/main.go"}}
	want := []string{"pkg/kubectl/help.go does not mention pkg/kubectl/taint",
		"cmd/kubectl/main.go imports pkg/kubectl/taint, and is not named"}
	if got := rows[0].faults(t, imports); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
