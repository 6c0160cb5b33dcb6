package release

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// goMod is the part of `go mod edit -json` that counts here.
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Tool []struct{ Path string } // packages
}

// builds reports whether a program is built of packages of the module.
func (m goMod) builds(module string) bool {
	return slices.ContainsFunc(m.Tool, func(p struct{ Path string }) bool {
		return strings.HasPrefix(p.Path, module+"/")
	})
}

// readMod returns what a go.mod file says.
func readMod(t *testing.T, path string) goMod {
	t.Helper()
	var m goMod
	if err := json.Unmarshal(output(t, "", "go", "mod", "edit", "-json", path), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func output(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v in %s: %v", name, args, dir, err)
	}
	return out
}

// TestModulesOfTools: a tool that comes with a release is built with the Kubernetes modules of the minor release that
// its authors built it with, for these modules promise nothing to others: with those of v1.37, containerd 2.3 did not
// compile. `make release` alone builds some of the tools.
func TestModulesOfTools(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/tools/*/go.mod")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	compared := 0
	for _, file := range append(files, "../../deploy/tools/go.mod") {
		m, ours := readMod(t, file), map[string]string{}
		for _, r := range m.Require {
			ours[r.Path] = r.Version
		}
		for _, tool := range m.Require {
			if tool.Indirect && !m.builds(tool.Path) {
				continue
			}
			out := output(t, filepath.Dir(file), "go", "list", "-m", "-f", "{{.GoMod}}", tool.Path)
			its := strings.TrimSpace(string(out))
			if its == "" {
				t.Fatalf("%s: no go.mod of %s", file, tool.Path)
			}
			for _, r := range readMod(t, its).Require {
				is, needed := ours[r.Path]
				if !needed || !strings.HasPrefix(r.Path, "k8s.io/") {
					continue
				}
				want := version.MustParseSemantic(r.Version)
				if want.PreRelease() != "" { // a commit, of a module without releases
					continue
				}
				compared++
				if version.MustParseSemantic(is).Minor() != want.Minor() {
					t.Errorf("%s has %s %s, and %s %s is made for %s: go get %s@%s there", file, r.Path, is, tool.Path,
						tool.Version, r.Version, r.Path, r.Version)
				}
			}
		}
	}
	if compared == 0 {
		t.Error("no tool needs a module of Kubernetes")
	}
}
